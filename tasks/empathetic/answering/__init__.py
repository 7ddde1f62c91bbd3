"""Answering with a trained model: from Python, in a chat and over HTTP."""
