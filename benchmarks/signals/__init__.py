"""Signals benchmark: a minute of analysis, beside pandas."""
