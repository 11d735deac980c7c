"""The settlement chain: contracts, JSON-RPC, and logs decoded to fills, ledger entries and resolutions."""
