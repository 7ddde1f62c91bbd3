"""EmoPrepend with its loss, and its steps in NumPy."""
