"""The HTTP server: Gunicorn worker, connection handling, headers and middleware."""
