"""Candles, figures of 24 hours and rankings, computed from trades."""
