"""Coverage: stored data, gaps, and reconciliation with the sources."""
