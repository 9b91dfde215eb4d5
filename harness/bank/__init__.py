"""The prompt bank: read, checked, measured, printed for review."""
