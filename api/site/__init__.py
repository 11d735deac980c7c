"""The site: pages, Markdown for agents, live prices and charts, all of it a client of our own API."""
