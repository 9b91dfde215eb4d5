"""What the rest stands on: a tree that is swapped in whole, workers, TOML files. Nothing here knows the benchmark."""
