"""What is measured and drawn of a trained model."""
