"""Every other page: leaderboard, models, attributes, concepts, judging, audit, prose, the root."""
