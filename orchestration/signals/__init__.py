"""Signals: notable market events, by definitions that can be applied again to any past minute (docs/signals.md)."""
