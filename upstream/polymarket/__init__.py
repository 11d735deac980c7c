"""Polymarket's APIs: one folder an API, as named in its documentation."""
