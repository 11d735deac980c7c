"""Registering an API key, and replacing it."""
