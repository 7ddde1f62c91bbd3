"""The model families: each as a network in Paddle, which trains, and as steps over NumPy arrays, which answer."""
