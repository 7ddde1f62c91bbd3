"""The commands: `tools/NAME.py` and `paddle-dialog NAME` both start the module NAME of this package."""
