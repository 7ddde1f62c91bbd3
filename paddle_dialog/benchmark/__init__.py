"""Measures how fast a recipe trains and answers on this machine."""
