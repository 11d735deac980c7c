"""The stream: latency from commit to client, fan-out and resuming."""
