"""EmoPrepend, its loss, and its steps in NumPy."""
