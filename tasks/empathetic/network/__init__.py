"""EmoPrepend, its loss, and its steps over arrays."""
