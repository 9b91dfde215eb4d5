"""Caps, reservations and the ledger of a run."""
