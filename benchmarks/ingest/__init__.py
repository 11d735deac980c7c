"""Ingest benchmark: rows written per second, and a sustained load through the whole feed."""
