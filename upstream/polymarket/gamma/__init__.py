"""Client of the Gamma API: the catalogue of markets and events."""
