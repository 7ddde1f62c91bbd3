"""Reading couplets and turning them into ids and batches."""
