"""Connections to the market channel: which tokens each follows, and whether it still delivers."""
