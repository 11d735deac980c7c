"""Stream benchmark: latency from commit to client, fan-out and resuming."""
