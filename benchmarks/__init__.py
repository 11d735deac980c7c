"""Benchmarks of `presage bench`: our figures beside a named rival's or limit's, measured in the same run."""
