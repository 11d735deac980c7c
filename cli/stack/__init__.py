"""`presage demo` and `presage up`: start, supervise and stop the processes of an installation."""
