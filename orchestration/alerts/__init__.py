"""Who is told when something is wrong, how often, and by what way."""
