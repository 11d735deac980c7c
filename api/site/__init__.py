"""The site: HTML pages, Markdown for agents, live prices and charts, all read from our own HTTP API."""
