"""The same question on two exchanges: texts are read into clauses, pairs of questions judged by them, candidates found.

Pure functions without a database, Dagster or network; not yet connected to any catalogue (docs/equivalents.md).
"""
