"""Signals: a minute of analysis, beside pandas."""
