"""Holds what is published against what its receipts give."""
