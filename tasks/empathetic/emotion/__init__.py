"""The speaker's emotion: its labels, the features and classifiers that tell it, and the words that hint at it."""
