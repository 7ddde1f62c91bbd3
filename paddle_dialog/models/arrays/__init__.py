"""Common parts of the families' steps over arrays; nothing here imports Paddle.

A search steps with a handful of rows. A step of Paddle is then mostly the launching of operators, and a start mostly
the import of Paddle; NumPy avoids both. The networks are the definition, and tests compare the arrays with them.
"""
