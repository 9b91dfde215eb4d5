"""Speed beside peers: `python -m tests.bench`. Never part of the tests."""
