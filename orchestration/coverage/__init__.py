"""What is held, counted against the exchange's list of trades and the chain's logs, and filled in where it can be."""
