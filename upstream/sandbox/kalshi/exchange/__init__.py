"""State of the sandbox Kalshi: listings, books, trades, candles, and what each event says."""
