"""Memory that all workers of a host share."""
