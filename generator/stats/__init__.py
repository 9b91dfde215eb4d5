"""The statistics behind every score: pure functions on arrays, 0-1 scale, NaN where there is no value.

See methodology: scoring, "Scoring"; methodology: statistics, "Statistics".
"""
