"""Lists benchmark: every list of markets, over an exchange's whole catalogue."""
