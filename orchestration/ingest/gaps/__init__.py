"""Gaps: spans in which messages may be missing, and how they are filled."""
