"""Speed beside peers: `python -m tests.bench` (issue 8). Never part of the tests."""
