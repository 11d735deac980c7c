"""What is held, and what is missing."""
