"""Order books of past moments: latency, and bytes on disk."""
