"""Configuration: settings read when a process starts, tunables that change while it runs, and logging."""
