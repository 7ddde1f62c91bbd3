"""The recipes and trained models that ship; see `paddle_dialog.recipes`."""
