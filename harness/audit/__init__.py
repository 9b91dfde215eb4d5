"""The human audit: the sheet that a reviewer fills in, and the labels that come back."""
