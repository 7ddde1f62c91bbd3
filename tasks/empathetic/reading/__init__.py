"""How a trained model reads conversations and replies."""
