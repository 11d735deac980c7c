"""A sandbox Kalshi: an exchange of our own that speaks Kalshi's protocols over HTTP and WebSocket."""
