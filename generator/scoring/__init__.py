"""From checked rows to every published table, and whether a run may be published."""
