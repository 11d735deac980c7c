"""What a run receives: sockets, books in step with the exchange's, and a record of what was missed."""

from collections.abc import Sequence
from functools import partial
from time import monotonic, time
from typing import Any

from config.settings import Settings
from orchestration.feeds.shards import WHOLE, Shard
from orchestration.ingest.deferral import DeferringNormalizer
from orchestration.ingest.exchanges.base import ExchangeClient
from orchestration.ingest.gaps.from_standby import BUSY_RATE
from orchestration.ingest.gaps.losses import Losses
from orchestration.ingest.gaps.starts import StartGaps
from orchestration.ingest.normalizer import Normalizer
from orchestration.ingest.resync import BookResync
from orchestration.ingest.sockets.listener import Keep, SocketListener
from orchestration.ingest.sockets.subscriptions import QUIET_S, Subscriptions
from orchestration.ingest.sockets.watchdog import Fetch
from upstream.polymarket.market_channel.socket import ChannelMessage, NewMarket, RefusedObject, Resolved

BUFFER_BYTES = 256_000_000  # of messages in memory, unless a setting says otherwise
KEPT_SHARE = 0.5  # of the buffer, for frames that a standby keeps unparsed


class Receiver:
    """Normalizes the messages of all sockets. `fetch` fetches books over REST."""

    def __init__(
        self, settings: Settings, exchange: ExchangeClient, fetch: Fetch, *, run_id: str, shard: Shard = WHOLE
    ) -> None:
        days = settings.books_retention_days
        of = exchange.exchange
        self.normalizer = Normalizer(oldest_event_days=days, sequenced=of.is_sequenced, source=of.socket_source)
        keep: Keep | None = None
        if settings.live_standby_defers and not exchange.exchange.is_sequenced:
            kept = int((settings.live_buffer_mb * 1_000_000 or BUFFER_BYTES) * KEPT_SHARE)
            self.normalizer = deferring = DeferringNormalizer(oldest_event_days=days, max_kept_bytes=kept)
            keep = partial(self._keep, deferring)
        self.losses = Losses(run_id, shard, exchange.exchange)
        self.starts = StartGaps(run_id, self.normalizer, shard, exchange.exchange)
        self.subscriptions = Subscriptions(
            exchange,
            self.normalizer,
            exchange.assets_per_socket or settings.live_assets_per_socket,
            on_messages=self._apply,
            on_opened=lambda listener: self.resync.opened(listener),  # noqa: PLW0108 (made below, from these)
            on_lost=lambda listener, cause: self.resync.lost(listener, cause),  # noqa: PLW0108
            on_missed=lambda _, missed: self.resync.missed(missed),
            keep=keep,
        )
        self.resync = BookResync(
            self.normalizer,
            self.subscriptions,
            self.losses,
            fetch,
            silence_s=settings.live_silence_s,
            shards=shard.of,
        )
        self._shard = shard
        self._began_s = int(time())
        self._busy: list[SocketListener] = []
        self._news: dict[tuple[type, str], NewMarket | Resolved] = {}  # not taken yet

    @property
    def ready(self) -> bool:
        """Whether every book is synced: this run could lead at once."""
        return self.resync.ready_since is not None

    def _keep(self, deferring: DeferringNormalizer, listener: SocketListener, text: bytes, received: float) -> bool:
        try:
            return deferring.keep(listener, text, received)
        except Exception as fault:  # noqa: BLE001 (as below)
            deferring.refuse(f"{type(fault).__name__}: {fault}", repr(text))
            return True

    def _apply(self, _: SocketListener, messages: Sequence[ChannelMessage | RefusedObject]) -> int:
        try:
            newest_ms = self.normalizer.apply(messages)
        except Exception as fault:  # noqa: BLE001 (one bad frame must not stop the feed)
            newest_ms = 0
            self.normalizer.refuse(f"{type(fault).__name__}: {fault}", repr(messages))
        if self.normalizer.news:
            self._hear()
        return newest_ms

    def _hear(self) -> None:
        """Subscribe to announced markets; news reaches every socket, whatever it is subscribed to, and counts once."""
        heard, self.normalizer.news = self.normalizer.news, []
        for news in heard:
            kind = type(news), news.market
            if kind not in self._news and self._shard.holds(news.market):
                self._news[kind] = news
                if isinstance(news, NewMarket):
                    self.subscriptions.anticipate([news])

    def take_news(self) -> list[NewMarket | Resolved]:
        """Return markets announced or resolved since the last call; the listing times of new ones are recorded."""
        self._hear()
        announced, self._news = list(self._news.values()), {}
        for message in announced:
            if isinstance(message, NewMarket) and message.ts_ms:
                self.starts.announce(message.market, message.ts_ms)
        return announced

    def find_busy(self) -> None:
        """Find the busy sockets; called once a second."""
        self._busy = [each for each in self.subscriptions.listeners if each.pulse.rate >= BUSY_RATE and each.newest_ms]

    def busy_newest_ms(self) -> list[int]:
        """Return each busy socket's newest timestamp."""
        return [listener.newest_ms for listener in self._busy]

    def delivers(self) -> bool:
        """Return whether any socket received something lately."""
        now = monotonic()
        return any(each.newest_ms and each.pulse.silent_s(now) < QUIET_S for each in self.subscriptions.listeners)

    def rate(self) -> float:
        """Return the messages received per second, on average over a minute."""
        return round(sum(listener.pulse.rate for listener in self.subscriptions.listeners), 1)

    def obstacle(self) -> dict[str, Any]:
        """Return what prevents receiving, and since when."""
        if not self.subscriptions.of_token:
            return {"reason": "follows no market", "since": self._began_s}
        troubles = [listener.trouble for listener in self.subscriptions.listeners if listener.trouble is not None]
        if not troubles:
            return {}
        reason, since = min(troubles, key=lambda trouble: trouble[1])
        return {"reason": reason, "since": since}
