"""Learning from rated answers."""
