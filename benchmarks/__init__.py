"""Benchmarks of `presage bench`: our figures beside a named rival or limit, measured in the same run."""
