"""Connections to the market channel: subscriptions, and whether each still delivers."""
