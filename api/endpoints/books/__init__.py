"""Order books, live and at any past moment."""
