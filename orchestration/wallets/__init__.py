"""Wallets: what is kept of the watched ones, what each holds and has earned, who traded most."""
