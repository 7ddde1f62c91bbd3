"""Replies that people wrote: a store of them, the search in it, and how it is made of a corpus or a file."""
