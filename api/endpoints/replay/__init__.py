"""Replay of the exchange's market channel over a WebSocket."""
