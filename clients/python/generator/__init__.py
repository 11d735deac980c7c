"""The generator of the client's operations and records: `make client` runs it."""
