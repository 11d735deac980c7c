"""Order books, live and of any past moment."""
