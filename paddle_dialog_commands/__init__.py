"""The commands. ``tools/NAME.py`` and ``paddle-dialog NAME`` start the same one: the module of that name here."""
