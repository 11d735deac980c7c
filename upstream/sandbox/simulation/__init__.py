"""Market simulation: seeded events, order flow and up to a fortnight of history."""
