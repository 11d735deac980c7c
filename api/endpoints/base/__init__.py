"""The base of every endpoint: its table row and the request handling."""
