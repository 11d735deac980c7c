"""Database roles: what the pipeline, the API, the site and analysts may do, and the logins that processes use."""
