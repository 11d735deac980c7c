"""Candles, 24-hour statistics and rankings, computed from trades."""
