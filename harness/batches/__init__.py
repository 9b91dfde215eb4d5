"""Vendors' batch endpoints: calls handed in as one batch, collected hours later, also by a later process."""
