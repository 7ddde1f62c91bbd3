"""The rules of form: what they ask of a 下联, the search that keeps them, and the report on a pair of lines."""
