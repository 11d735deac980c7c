"""Client of the Data API: trades, positions and activity of wallets."""
