"""The HTTP server: it knows no task; a task offers `Endpoint`s, see `paddle_dialog.task.Task.endpoints`."""
