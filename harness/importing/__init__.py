"""Answers and labels that another harness collected, in: a map and tables become a run of kind `imported`."""
