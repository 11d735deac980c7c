"""API keys and credits."""
