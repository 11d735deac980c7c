"""HTTP, rate limits, errors and numbers: shared by all upstream clients."""
