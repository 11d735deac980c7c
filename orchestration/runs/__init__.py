"""Runs of Dagster on other hosts than the daemon's: those with the role `runs` (decision 0056)."""
