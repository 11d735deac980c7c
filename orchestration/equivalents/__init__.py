"""The same question on two exchanges: texts are read into clauses, pairs of questions judged by them, candidates found.

All but `passes` are pure functions, without a database or network (docs/equivalents.md).
"""
