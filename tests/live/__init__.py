"""Real models on this machine: run by `make test-live`, never by `make test`."""
