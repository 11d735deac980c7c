"""Client of the WebSocket API: order books kept by sequence numbers, tickers, trades and life cycles."""
