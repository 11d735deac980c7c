"""Benchmark of the same question on two exchanges: verdicts against labels, and candidates over large catalogues."""
