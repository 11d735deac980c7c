"""Webhooks benchmark: latency from commit to receiver, and deliveries per second."""
