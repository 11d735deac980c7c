"""Endpoints that are truly different from one another."""
