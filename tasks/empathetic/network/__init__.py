"""EmoPrepend and its loss, with the same steps over arrays beside it."""
