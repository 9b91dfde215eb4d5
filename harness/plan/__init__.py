"""A run's plan: `run.toml` read, checked whole and frozen."""
