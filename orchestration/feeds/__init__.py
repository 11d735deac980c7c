"""Long-running feeds: two runs each, of which one leads by a lease in the database."""
