"""The statistics of SPEC 4 and 5: pure functions on arrays, 0-1 scale, NaN where there is no value."""
