"""The speaker's emotion: labels, features and classifiers, and the words that hint at it."""
