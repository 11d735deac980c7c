"""What a program that uses Presage imports. It needs nothing of the server's."""
