"""A sandbox exchange: serves the real exchange's protocols from a simulation or a folder of recordings."""
