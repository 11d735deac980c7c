"""Internals, for operators with the debug token."""
