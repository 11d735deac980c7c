"""Rows, and committing batches of them."""
