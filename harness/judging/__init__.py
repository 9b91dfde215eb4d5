"""Stage judge: the panel, the question put to a judge, and its strict answer."""
