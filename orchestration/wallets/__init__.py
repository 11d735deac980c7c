"""Wallets: activity of watched ones, each wallet's positions and profit, leaderboards."""
