"""What an installation shows of itself: a table of its state, its first answers, and the outcome of a run."""
