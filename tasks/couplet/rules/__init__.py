"""The rules of form: what they require of an answer, the search under them, and the report on a pair of lines."""
