"""Signals: what stands out, by definitions that any past minute can be held against again (docs/signals.md)."""
