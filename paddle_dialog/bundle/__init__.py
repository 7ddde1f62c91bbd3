"""A trained model as one folder: its format, reading it, exporting it, the network built from it on demand."""
