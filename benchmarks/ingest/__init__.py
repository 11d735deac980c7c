"""Ingest: rows written a second, and a sustained load through the whole feed."""
