"""From values to HTML: the page frame, prose, charts, and many pages at once."""
