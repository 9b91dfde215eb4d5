"""From receipts to scores to a static site. Knows nothing of the harness that wrote the receipts."""
