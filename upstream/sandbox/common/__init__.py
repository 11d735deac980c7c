"""What the sandboxes of all exchanges have in common: server, sockets, faults, truth log, order flow."""
