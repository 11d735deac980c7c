"""Dagster's assets, jobs, schedules and sensors, one module a topic."""
