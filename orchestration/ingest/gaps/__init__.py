"""Gaps: spans in which messages may be missing, and what fills them."""
