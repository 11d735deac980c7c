"""Alerts: who is notified of failures, how often, and through which channel."""
