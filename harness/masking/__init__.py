"""Hides who an answer is about before a judge sees it."""
