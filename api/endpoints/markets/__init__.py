"""Markets: lists, search, detail and rankings."""
