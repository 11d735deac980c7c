"""The catalogue of markets: read from the exchange and merged into ours."""
