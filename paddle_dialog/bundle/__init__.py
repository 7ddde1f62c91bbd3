"""A trained model as one folder: its format, reading and exporting it, and its network, built on demand."""
