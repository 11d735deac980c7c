"""Dagster's assets, jobs, schedules and sensors, one module per topic."""
