"""Reading conversations and turning them into ids and batches."""
