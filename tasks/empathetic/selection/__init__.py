"""Replies that people wrote: a store of them, the search in it, and how one is made of a corpus or of a user's file."""
