"""Wallets: positions, leaderboards and their endpoints."""
