"""Damaged files by the thousand, each kind that the program reads: `make fuzz`, outside `make test`."""
