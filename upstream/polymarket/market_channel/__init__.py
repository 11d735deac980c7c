"""The market channel: the WebSocket that sends books, price changes and trades."""
