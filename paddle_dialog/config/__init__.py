"""Configuration: YAML files and `-o` overrides become typed, cross-checked dataclasses."""
