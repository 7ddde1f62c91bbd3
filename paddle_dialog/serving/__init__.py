"""The HTTP server: it knows no task; a task offers an `Endpoint`, see `paddle_dialog.task.Task.endpoint`."""
