"""Mutation testing: small faults put into the code on purpose, and the tests that notice them."""
