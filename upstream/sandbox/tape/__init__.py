"""Recordings read from a folder and played on the sandbox's exchange."""
