"""The rules of form: what they require of a 下联, the search under them, and the report on a pair of lines."""
