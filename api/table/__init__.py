"""Lines of the endpoint table, by topic; `api.endpoints` puts them together."""
