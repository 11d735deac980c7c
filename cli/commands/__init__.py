"""Commands of `presage`, one module each."""
