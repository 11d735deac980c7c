"""Clients of Kalshi's APIs: `rest`, and `socket` with its order books; keys are read and used by `signing`."""
