"""Capacity of the live feed: CPU per event, lag, memory and time until ready, at any rate and number of markets."""
