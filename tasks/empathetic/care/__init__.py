"""The care for people in distress: what speaks of self-harm is answered by a fixed sentence, never by a model."""
