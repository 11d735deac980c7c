"""The market catalogue: read from the exchange and merged into ours."""
