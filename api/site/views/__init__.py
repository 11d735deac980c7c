"""The pages: each a function from a visit to what is to be shown."""
