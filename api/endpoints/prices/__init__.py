"""Prices and candles."""
