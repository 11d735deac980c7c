"""Books benchmark: past order books, their latency, and bytes on disk."""
