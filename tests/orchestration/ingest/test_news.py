"""Announced markets are heard once, and fetched by the leader, even if nobody led at that moment."""

from __future__ import annotations

import asyncio

from config.settings import Settings
from orchestration.ingest.exchanges.polymarket import PolymarketClient
from orchestration.ingest.news import MarketNews
from orchestration.ingest.receiver import Receiver
from tests.orchestration.ingest.builders import UNREACHABLE
from upstream.polymarket.market_channel.socket import NewMarket

RECEIVED_AT = 1000.0


def announced(market="0x01"):
    names = {"id": "1", "question": "Rain?", "slug": "rain", "token_ids": ["11", "12"], "outcomes": ["Yes", "No"]}
    unknown = dict.fromkeys(["description", "event_id", "event_slug", "event_title", "tick_size"])
    return NewMarket(market=market, ts_ms=1, tags=[], active=True, **names, **unknown)


def test_news_that_every_socket_brings_counts_once():
    async def heard():
        receiver = Receiver(Settings(_env_file=None), UNREACHABLE, None, run_id="me")
        followed = []
        receiver.subscriptions.anticipate = lambda markets: followed.extend(each.market for each in markets)
        for market in ("0x01", "0x02"):
            for _ in range(800):
                receiver._apply(None, [announced(market)])
        return followed, [each.market for each in receiver.take_news()], receiver.take_news()

    assert asyncio.run(heard()) == (["0x01", "0x02"], ["0x01", "0x02"], [])


class Catalogue(PolymarketClient):
    """An exchange client that records requests and returns nothing."""

    requested: list[str]

    def markets(self, condition_ids):
        self.requested = list(condition_ids)
        return [], []


def standby_news(database_url) -> tuple[MarketNews, Catalogue]:
    exchange = Catalogue("", "", "", "")
    return MarketNews(database_url, exchange), exchange


def test_a_standby_that_comes_to_lead_asks_for_what_it_heard_a_minute_ago(database_url):
    news, exchange = standby_news(database_url)
    news.add([announced()], RECEIVED_AT)
    news.forget(before=RECEIVED_AT - 60)

    news.settle(RECEIVED_AT + 60)
    news.close()

    assert exchange.requested == ["0x01"]


def test_a_standby_forgets_what_the_leader_has_long_dealt_with(database_url):
    news, _ = standby_news(database_url)
    news.add([announced()], RECEIVED_AT)

    news.forget(before=RECEIVED_AT + 1)

    assert not news.due(RECEIVED_AT + 1000)
