"""Access to data: connection pools, prepared statements, caches and the proxy to the exchange."""
