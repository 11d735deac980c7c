"""HTTP and WebSocket routes of the sandbox, one module an API."""
