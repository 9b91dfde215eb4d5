"""One call to a model or judge: its key, the attempt over HTTP, what the reply means, and when to try again."""
