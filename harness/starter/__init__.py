"""A small benchmark to begin with, as `aibiasbench init` writes it."""
