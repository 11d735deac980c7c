"""Endpoints that forward requests to the exchange."""
