"""The model families, one folder each: an encoder and a decoder as Paddle networks, and their steps over arrays."""
