"""A connection to the Community server, for grants."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace

from psycopg import sql


class Rows(list):
    """Rows of a statement, as a cursor gives them."""

    fetchall = list.copy

    def fetchone(self):
        return self[0] if self else None


class CommunityConnection:
    """As much of a connection to the Community server as grants need."""

    info = SimpleNamespace(server_version=170005)
    transaction = staticmethod(nullcontext)

    def __init__(self, community):
        self.community = community

    def execute(self, query, parameters=()):
        text = query.as_string(None) if isinstance(query, sql.Composable) else query
        for parameter in parameters:
            text = text.replace("%s", sql.Literal(parameter).as_string(None), 1)
        return Rows(self.community.execute(text))
