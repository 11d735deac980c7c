"""What keeps the database small: retention, packing of past books, pruning of Dagster's history."""
