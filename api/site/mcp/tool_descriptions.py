"""What each tool is called, and when it is the one to use: what a model chooses by."""

from __future__ import annotations

# By the operation's name in the OpenAPI document: its title, and how the sentence "Use it …" goes on.
WORDS: dict[str, tuple[str, str]] = {
    # The service
    "health": ("Service health", "to find out whether the service answers at all, before anything else is tried."),
    "time": ("Server time", "when a question says now, today or an hour ago, and the clock of the data matters."),
    "stats": ("Platform totals", "for how many markets and trades there are in all, and the volume of the day."),
    "pipeline_status": ("Data freshness", "when an answer looks old or empty, to see which stage of the data is late."),
    "coverage": (
        "What is held",
        "to learn which days and kinds of data are complete before an analysis rests on them.",
    ),
    "market_coverage": ("What is held of a market", "to learn of gaps in a market's history before drawing from it."),
    # Finding markets
    "search_markets": ("Search markets", "first, when a market is known by words only: it gives the `market_id`."),
    "markets": ("List markets", "to walk all markets, or those of a state, category, tag or series, page by page."),
    "top_markets": ("Busiest markets", "for where most is traded in an hour, a day or a week."),
    "trending_markets": ("Trending markets", "for where trading has picked up within the last hour."),
    "breaking_markets": ("Biggest movers", "for whose price has just moved, as after news."),
    "new_markets": ("New markets", "for what has been listed lately."),
    "resolving_markets": ("Markets about to end", "for what will be decided within hours or days."),
    "markets_by_timeframe": ("Markets by time left", "for short-lived markets, such as five-minute prices of a coin."),
    "categories": ("Categories", "to learn the slugs that other tools take as `category`."),
    "category_markets": ("Markets of a category", "when the category's slug is known."),
    "tags": ("Tags", "to learn the slugs that other tools take as `tag`."),
    "series": ("Series", "to learn the names that other tools take as `series`."),
    "events": ("Events of the exchange", "for groups of markets about one thing, as the exchange itself has them now."),
    "event_markets": ("Markets of an event", "when the `event_id` of a market is known, for all its alternatives."),
    "related_markets": ("Related markets", "for the alternatives to one market: others of the same event."),
    # One market
    "market": ("Market in full", "for all there is to say of one market: question, outcomes, price, book, last day."),
    "market_summary": ("Market summary", "for a market's price, signals and last day in one call, at less length."),
    "market_stats": ("Market's last 24 hours", "for its open, high, low, close, volume and change within a day."),
    "market_health": ("Freshness of a market", "when one market's price or book seems old or is missing."),
    "market_sentiment": ("Market sentiment", "for one word on where a market leans: bullish, bearish or neutral."),
    "compare_markets": ("Compare markets", "to lay up to ten markets side by side."),
    # Prices
    "market_price": ("Live price", "for what one outcome costs right now: bid, ask, mid and last trade."),
    "prices": ("Live prices of several markets", "instead of many single calls when several markets are of interest."),
    "market_orderbook": ("Order book", "for who bids and asks how much, now or (with `at`) at a past moment."),
    "market_orderbook_history": ("Order book over time", "for how a book has changed, at even steps of time."),
    "market_liquidity": ("Liquidity", "for spread and depth in brief, to judge whether a size can be traded."),
    "market_price_history": ("Price history", "for candles of any range: a chart, a trend, a past price."),
    "market_candles": ("Candles for charts", "only to feed a charting library; else take the price history."),
    # Trades and signals
    "market_trades": (
        "Trades of a market",
        "for single trades of an outcome or of all, the newest or those of a range.",
    ),
    "recent_trades": ("Newest trades", "for what is being traded everywhere, and by which wallets."),
    "market_signals": ("Signals of a market", "for what has stood out in one market: momentum, volume, whales."),
    "top_signals": ("Strongest signals", "for what stands out most anywhere within a day, as whale trades."),
    # Wallets
    "leaderboard": ("Leading wallets", "to find wallets worth a look, by volume or by profit."),
    "wallet_summary": ("Wallet summary", "first, for a wallet's totals before its single trades."),
    "wallet_pnl": ("Profit and loss of a wallet", "for what a wallet has earned, market by market. It is the dearest."),
    "wallet_markets": ("Markets of a wallet", "for what a wallet has traded, and its net position in each."),
    "wallet_open_positions": ("Open positions by the chain", "for what a wallet holds, as its settlements tell."),
    "wallet_onchain": ("Settled trades of a wallet", "for any wallet's single trades of the last 14 days."),
    "wallet_activity": ("Activity of a watched wallet", "for what a wallet did since it has been watched."),
    "watched_wallets": ("Watched wallets", "to see which wallets this account follows."),
    "watch_wallet": ("Watch a wallet", "when the user wants to follow a wallet from now on. It changes the account."),
    "unwatch_wallet": ("Stop watching a wallet", "only when the user asks to follow a wallet no more."),
    "positions": ("Positions of a wallet", "for what a wallet holds right now by the exchange's own word."),
    "closed_positions": ("Closed positions of a wallet", "for what a wallet has sold or redeemed, with its result."),
    "market_positions": ("Holders of a market", "for who holds most of a market's outcomes."),
    # Webhooks and exports
    "webhooks": ("Webhooks", "to see what is sent where, before anything about it is changed."),
    "create_webhook": (
        "Create a webhook",
        "when the user wants events sent to an address of theirs. Show them the secret.",
    ),
    "webhook": ("Webhook", "for one webhook's filters and state."),
    "change_webhook": ("Change a webhook", "when the user wants other events, another address, or a pause."),
    "remove_webhook": ("Remove a webhook", "only when the user asks to be sent nothing more: it cannot be undone."),
    "test_webhook": ("Test a webhook", "to find out whether an address takes what is sent there."),
    "webhook_deliveries": (
        "Deliveries of a webhook",
        "when something did not arrive, for what was tried and answered.",
    ),
    "redeliver": ("Deliver once more", "when the receiver has lost a message or works again."),
    "exports": ("Exports", "to find whole days as files, for more data than fits into answers."),
    "export_manifest": ("Files of an export", "for a day's files with their rows, sizes and checksums."),
    # Charts: TradingView's protocol
    "udf_config": ("Chart feed: configuration", "only to set up TradingView's charting library."),
    "udf_symbols": ("Chart feed: a symbol", "only where a charting library asks for a symbol's description."),
    "udf_search": ("Chart feed: search", "only where a charting library looks for symbols; else search the markets."),
    "udf_history": ("Chart feed: bars", "only where a charting library wants bars; else take the price history."),
    "udf_time": ("Chart feed: clock", "only where a charting library wants the time."),
    "udf_quotes": ("Chart feed: quotes", "only where a charting library wants quotes; else take the live prices."),
    "udf_marks": ("Chart feed: marks", "for large trades and changes of state as marks on a chart."),
    "udf_timescale_marks": ("Chart feed: marks of time", "for when a market began, ends and was resolved."),
}


def title(name: str) -> str:
    """Name a tool for people."""
    return WORDS[name][0] if name in WORDS else name.replace("_", " ").capitalize()


def description(name: str, operation: dict[str, object]) -> str:
    """Say what a tool gives, when it is the one to use, and what it costs."""
    said = [f"{operation['summary']}.", operation.get("description", "")]
    if name in WORDS:
        said.append(f"Use it {WORDS[name][1]}")
    said.append(f"Credits: {operation['x-credits']}.")
    return " ".join(str(part) for part in said if part)
