"""Endpoints, one folder a topic: its routes, requests, records and resources; table.py lists them all."""
