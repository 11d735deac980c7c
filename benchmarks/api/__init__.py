"""API benchmark: CPU time per request, and the latency of each endpoint."""
