"""Every file that a reader can download, and what describes it."""
