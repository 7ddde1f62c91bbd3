"""Whole couplets without a 上联: from a theme, from a name, or from nothing."""
