"""What every endpoint builds on: its row in the table, and how a request is answered."""
