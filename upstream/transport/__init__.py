"""HTTP, rate limits, errors and numbers: what the clients of every upstream share."""
