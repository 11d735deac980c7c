"""Wallets and leaderboards."""
