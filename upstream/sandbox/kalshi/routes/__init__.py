"""Kalshi's REST API, one module per group of endpoints."""
