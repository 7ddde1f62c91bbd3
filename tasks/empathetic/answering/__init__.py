"""A trained model that answers: from Python, in a chat and over HTTP."""
