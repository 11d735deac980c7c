"""Chain benchmarks: decoding of logs, and rows committed per second."""
