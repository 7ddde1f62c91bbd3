"""What the families' steps over arrays have in common; nothing here imports Paddle.

A search steps with a handful of rows. There a step of Paddle's is mostly the launching of its operators, and a start
mostly the import of Paddle; NumPy spares both. The networks stay the definition,
to whose numbers tests hold the arrays.
"""
