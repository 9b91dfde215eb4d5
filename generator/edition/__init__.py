"""One run as a site shows it: its settings, paths, banners, and the form of a number or of somebody else's text."""
