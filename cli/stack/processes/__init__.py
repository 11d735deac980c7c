"""Child processes: programs, the supervisor that restarts them, and the guard that ends them if it is killed."""
