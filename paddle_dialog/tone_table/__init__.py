"""How the table of tones (`paddle_dialog.text.tones`) is made, by libraries that only development needs."""
