"""Rows, and how batches of them are committed."""
