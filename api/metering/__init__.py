"""API keys, and the credits that requests cost."""
