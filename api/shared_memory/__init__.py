"""Memory shared by all workers of a host."""
