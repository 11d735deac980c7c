"""The live feed, from the exchange's sockets to committed rows. Dagster only starts, stops and watches it."""
