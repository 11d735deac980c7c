"""Clients of Polymarket's APIs: one folder per API, named as in its documentation."""
