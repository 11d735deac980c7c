"""The pages: each a function from a Visit to a Page."""
