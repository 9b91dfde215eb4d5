"""Programs that other people use, run on a data folder as their users run them (`make test-tools`)."""
