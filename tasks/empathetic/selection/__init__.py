"""Replies that people wrote: a store of them, the search in it, and its making from a corpus or a file."""
