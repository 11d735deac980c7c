"""Seeded simulation of Kalshi's markets, through all states of their lives."""
