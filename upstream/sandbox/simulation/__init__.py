"""A simulated market: seeded events, order flow and a past of a fortnight."""
