"""Webhooks: latency from commit to receiver, and deliveries a second."""
