"""Endpoints that pass on what the exchange answers right now."""
