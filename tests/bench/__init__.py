"""Speed of publishing and scoring, side by side with peers: `python -m tests.bench` (issue 8). Never part of the tests."""
