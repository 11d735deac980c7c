"""The exchange itself: its catalogue, order books, trades and portfolios."""
