"""Order books: levels per token, the queue of live books to write, and disagreements with the exchange."""
