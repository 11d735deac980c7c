"""Client of the REST API: markets, events, series, trades, order books, candles, and the exchange's state."""
