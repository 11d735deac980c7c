"""Lake benchmark: writing a day, its bytes, and reading it with another engine."""
