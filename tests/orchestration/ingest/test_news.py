"""Markets that the exchange announces are asked for by whoever leads, also when nobody did at that moment."""

from __future__ import annotations

from orchestration.ingest.exchange import Exchange
from orchestration.ingest.news import News
from upstream.polymarket.market_channel.socket import NewMarket

HEARD_AT = 1000.0


def announced(market="0x01"):
    names = {"id": "1", "question": "Rain?", "slug": "rain", "token_ids": ["11", "12"], "outcomes": ["Yes", "No"]}
    unknown = dict.fromkeys(["description", "event_id", "event_slug", "event_title", "tick_size"])
    return NewMarket(market=market, ts_ms=1, tags=[], active=True, **names, **unknown)


class Catalogue(Exchange):
    """An exchange that notes what it was asked for, and has nothing yet."""

    asked: list[str]

    def markets(self, condition_ids):
        self.asked = list(condition_ids)
        return [], []


def news(database_url) -> tuple[News, Catalogue]:
    exchange = Catalogue("", "", "", "")
    return News(database_url, exchange), exchange


def test_a_standby_that_comes_to_lead_asks_for_what_it_heard_a_minute_ago(database_url):
    heard, exchange = news(database_url)
    heard.hear([announced()], HEARD_AT)
    heard.forget(before=HEARD_AT - 60)

    heard.settle(HEARD_AT + 60)
    heard.close()

    assert exchange.asked == ["0x01"]


def test_a_standby_forgets_what_the_leader_has_long_dealt_with(database_url):
    heard, _ = news(database_url)
    heard.hear([announced()], HEARD_AT)

    heard.forget(before=HEARD_AT + 1)

    assert not heard.due(HEARD_AT + 1000)
