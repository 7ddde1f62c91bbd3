"""Couplets: where they are read from, and how they become ids and batches."""
