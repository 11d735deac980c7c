"""Several writers of one stream: how many commits a second they can make."""
