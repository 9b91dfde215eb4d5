"""What the operator sees while a stage runs and when it ends."""
