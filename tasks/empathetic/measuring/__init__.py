"""Metrics and figures of a trained model."""
