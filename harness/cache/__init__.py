"""Answers that have been paid for, and the SQLite files that a crash must not break."""
