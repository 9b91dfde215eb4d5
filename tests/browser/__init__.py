"""Tests in a real Chromium over a small published site."""
