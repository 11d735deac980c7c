"""Coverage: stored data reconciled against the exchange's trade list and the chain's logs, and filled in."""
