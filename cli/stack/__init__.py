"""`presage demo` and `presage up`: the processes of an installation, started, watched and ended."""
