"""Recordings of Kalshi, read from a folder and played."""
