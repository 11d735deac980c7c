"""The API: processor time a request, and the latency of each endpoint."""
