"""Replies that say back what the speaker has said."""
