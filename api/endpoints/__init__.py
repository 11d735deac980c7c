"""Endpoints, one folder per topic with its routes, requests, records and resources; table.py lists them all."""
