"""The settlement chain: contracts, JSON-RPC, and decoding of logs to fills, ledger entries and resolutions."""
