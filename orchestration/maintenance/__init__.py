"""Maintenance of the database's size: retention, packing of past books, pruning of Dagster's history."""
