"""Runs many calls: cache, money, retries and concurrency in one place."""
