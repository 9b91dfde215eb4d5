"""A run folder in: manifest, bank, shards, votes and redactions, read and checked whole before any work."""
