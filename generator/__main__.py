"""`python -m generator`: the same program as `aibiasbench`."""

from generator.cli import program

program()
