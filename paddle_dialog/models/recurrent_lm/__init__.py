"""A stacked LSTM that predicts each next token and carries its state from window to window."""
