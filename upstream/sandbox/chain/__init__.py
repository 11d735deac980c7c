"""The simulated settlement chain."""
