"""The chain: decoding of logs, and rows committed a second."""
