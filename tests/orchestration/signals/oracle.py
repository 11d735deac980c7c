"""The signals of a history by docs/signals.md, computed in pandas, market by market and minute by minute."""

from __future__ import annotations

import pandas as pd

from tests.orchestration.signals.histories import instant, millis

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000


class Oracle:
    """Computes signals from the rows, without the database."""

    def __init__(self, history):
        self.history = history
        self.trades = pd.DataFrame(
            history.trades, columns=["market", "outcome", "ts", "seq", "price", "size", "value"]
        ).sort_values("seq", kind="stable")
        self.quotes = pd.DataFrame(history.quotes, columns=["market", "outcome", "ts", "bid", "ask"], dtype=object)
        self.quotes = self.quotes.astype({"market": int, "outcome": int, "ts": "int64"}).sort_values("ts")
        self.books = pd.DataFrame(
            history.books, columns=["market", "outcome", "ts", "seq", "bids", "asks"]
        ).sort_values(["ts", "seq"])
        self.last = {}

    def run(self, first, until, by):
        """Return all signals of the minutes from `first` to `until`, both inclusive."""
        found = []
        at = millis(first)
        while at <= millis(until):
            for market, key in enumerate(self.history.markets):
                for type_, value, threshold, direction in self.judge(market, at, by):
                    kind = type_, market, None if type_ == "volume_spike" else direction
                    silent_ms = getattr(by, f"{type_}_cooldown_min") * MINUTE
                    if kind in self.last and at - self.last[kind] < silent_ms:
                        continue
                    self.last[kind] = at
                    found.append((instant(at), key, type_, value, threshold, direction))
            at += MINUTE
        return found

    def judge(self, market, at, by):
        trades = self.trades[(self.trades.market == market) & (self.trades.ts < at)]
        hour = trades[trades.ts >= at - HOUR]
        if len(hour) < by.signal_min_trades or hour.value.sum() < by.signal_min_volume_usd * 1e6:
            return
        if self.state(market, at) != "ACTIVE":
            return
        yield from self.of_trades(trades, hour, market, at, by)
        quotes = self.quotes[(self.quotes.market == market) & (self.quotes.outcome == 0) & (self.quotes.ts < at)]
        if self.missed("books", market, at, 70 * MINUTE) <= 0.05 * HOUR:
            yield from self.of_spread(quotes, at, by)
            yield from self.of_books(market, at, by)

    def of_trades(self, trades, hour, market, at, by):
        day = trades[trades.ts >= at - DAY]
        first = day.ts.min()
        # For a trade in a whole hour, only that hour counts.
        began = first if first < -(-(at - DAY) // HOUR) * HOUR or first >= at // HOUR * HOUR else first // HOUR * HOUR
        past = at - began >= by.signal_min_history_h * HOUR
        young, chance = self.life(first if first >= at - 65 * MINUTE else began, market, at)
        if not (past or young) or self.missed("trades", market, at, 70 * MINUTE) > 0.05 * HOUR:
            return
        yes = trades[trades.outcome == 0]
        usual = self.usual(yes, at)

        now, baseline = self.prices(yes, market, at)
        move = 0 if now is None or baseline is None else now - baseline
        if self.missed("books", market, at, 70 * MINUTE) <= 0.05 * HOUR and baseline is not None and now is not None:
            threshold = round(float(max(by.momentum_min_move, by.momentum_factor * usual, 1.5 * chance)), 6)
            if abs(move) / 1e6 >= threshold:
                yield "momentum", abs(move) / 1e6, threshold, sign(move)

        if past and self.missed("trades", market, at, DAY) <= 0.05 * DAY:
            ratio = round(float(hour.value.sum() / (day.value.sum() / 24)), 6)
            if ratio >= by.volume_spike_ratio:
                yield "volume_spike", ratio, round(by.volume_spike_ratio, 6), sign(move)

        recent = yes[yes.ts >= at - HOUR]
        closes = recent.groupby(recent.ts // MINUTE).price.last()
        if len(closes) >= 4:
            up, down = closes.max() - closes.iloc[0], closes.iloc[0] - closes.min()
            turn = closes.max() if up >= down else closes.min()
            run, back = turn - closes.iloc[0], closes.iloc[-1] - turn
            if abs(run) / 1e6 >= max(by.price_reversal_min_move, by.price_reversal_factor * usual, 1.5 * chance):
                share = round(abs(int(back)) / abs(int(run)), 6)
                if share >= by.price_reversal_share:
                    yield "price_reversal", share, round(by.price_reversal_share, 6), sign(back)

    def life(self, began, market, at):
        """Return whether a tenth of its life has passed, and how far chance has moved its price in 65 minutes."""
        end = self.history.ends.get(market)
        if end is None or end <= began:
            return False, 0.0
        share = min(at - began, 65 * MINUTE, end - began) / (end - began)
        return at - began >= 0.1 * (end - began), round(0.5 * share**0.5, 6)

    def usual(self, yes, at):
        whole = yes[(yes.ts >= -(-(at - DAY) // HOUR) * HOUR) & (yes.ts < at // HOUR * HOUR)]
        hours = whole.groupby(whole.ts // HOUR).price.agg(["first", "last"])
        hours = hours[(hours.index + 1) * HOUR <= at - 65 * MINUTE]
        return 0.0 if hours.empty else round(float((hours["last"] - hours["first"]).abs().mean()) / 1e6, 6)

    def prices(self, yes, market, at):
        quotes = self.quotes[(self.quotes.market == market) & (self.quotes.outcome == 0) & (self.quotes.ts < at)]
        held = quotes[quotes.ts >= at - DAY]
        traded = yes[yes.ts >= at - 65 * MINUTE]
        now = None if held.empty else middle(held.iloc[-1])
        if now is None and not traded.empty:
            now = int(traded.price.iloc[-1])
        middles = [middle(row) for _, row in quotes[quotes.ts >= at - 65 * MINUTE].iterrows()]
        middles = [each for each in middles if each is not None]
        baseline = middles[0] if middles else None
        if baseline is None and not traded.empty:
            baseline = int(traded.price.iloc[0])
        return now, baseline

    def of_spread(self, quotes, at, by):
        now, both = self.spread(quotes, at - 5 * MINUTE, at)
        before, both_before = self.spread(quotes, at - 65 * MINUTE, at - 5 * MINUTE)
        if both < 240_000 or both_before < 1_800_000:
            return
        threshold = round(float(max(by.spread_widening_min_spread, by.spread_widening_factor * before)), 6)
        if now >= threshold:
            yield "spread_widening", now, threshold, None

    def spread(self, quotes, since, until):
        """Return the mean by time, and the milliseconds with both sides."""
        standing = quotes[(quotes.ts <= since) & (quotes.ts >= since - DAY)].tail(1)
        rows = pd.concat([standing, quotes[(quotes.ts > since) & (quotes.ts < until)]])
        lasted = rows.ts.clip(lower=since).diff(-1).abs().fillna(until - rows.ts.clip(lower=since))
        whole = rows.bid.notna() & rows.ask.notna()
        both = int(lasted[whole].sum())
        spread = ((rows.ask - rows.bid)[whole] * lasted[whole]).sum()
        return (round(float(spread) / both / 1e6, 6) if both else 0.0), both

    def of_books(self, market, at, by):
        books = self.books[(self.books.market == market) & (self.books.outcome == 0) & (self.books.ts < at)]
        newest = books[books.ts >= at - 10 * MINUTE].tail(5)
        leans = [lean for lean in map(lean_of, newest.bids, newest.asks) if lean is not None]
        before = []
        for stretch in range(6):
            since = at - 70 * MINUTE + stretch * 10 * MINUTE
            first = books[(books.ts >= since) & (books.ts < since + 10 * MINUTE)].head(1)
            before += [lean for lean in map(lean_of, first.bids, first.asks) if lean is not None]
        if len(leans) < 3 or len(before) < 3:
            return
        lean, baseline = (round(sum(each) / len(each) / 1e6, 6) for each in (leans, before))
        leant = lean * baseline > 0 and abs(baseline) >= by.book_imbalance_lean / 2
        if not leant and abs(lean) >= by.book_imbalance_lean:
            yield "book_imbalance", abs(lean), round(by.book_imbalance_lean, 6), sign(lean)

    def state(self, market, at):
        rows = [row for row in self.history.changes if row[0] == market]
        state = rows[0][2] if rows else self.history.statuses.get(market, "ACTIVE")
        for _, ts, _, after in rows:
            if ts < at:
                state = after
        return state

    def missed(self, kind, market, at, window):
        total = 0
        for of_kind, of_market, since, until, filled in self.history.gaps:
            if of_kind != kind or of_market not in (None, market) or since >= at:
                continue
            if filled is not None and filled <= at:
                continue
            total += max(0, (at if until is None else min(until, at)) - max(since, at - window))
        return total


def middle(quote):
    """Return a quote's price: None while a side is empty, or the sides are more than ten cents apart."""
    if pd.isna(quote.bid) or pd.isna(quote.ask) or quote.ask - quote.bid > 100_000:
        return None
    return int(quote.bid + quote.ask) // 2


def lean_of(bids, asks):
    bids, asks = sum(bids[:5]), sum(asks[:5])
    return round((bids - asks) * 1e6 / (bids + asks)) if bids and asks else None


def sign(number):
    return None if not number else 1 if number > 0 else -1
