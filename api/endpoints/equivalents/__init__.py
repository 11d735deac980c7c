"""Markets of other exchanges that may ask the same question."""
