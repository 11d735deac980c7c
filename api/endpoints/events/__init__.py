"""Events, categories, tags and series."""
