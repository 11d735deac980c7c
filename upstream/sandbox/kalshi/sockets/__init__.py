"""Kalshi's WebSocket protocol: commands, subscriptions, sequence numbers."""
