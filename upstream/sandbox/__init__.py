"""An exchange of our own: speaks the real one's protocols, plays a simulation or a folder of recordings."""
