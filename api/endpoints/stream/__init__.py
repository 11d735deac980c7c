"""The stream over a WebSocket."""
