"""Pages of receipts: a row, a matched set, the plain list of a model, the explorer."""
