"""What is fitted beside the network: the n-gram classifier of emotions and the judge of replies; their commands."""
