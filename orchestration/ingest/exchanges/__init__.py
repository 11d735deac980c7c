"""Clients of the exchanges as the feed uses them: one module for each exchange, behind the interface of `base`."""
