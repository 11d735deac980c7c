"""Titles and usage hints of the tools, from which a model chooses."""

from __future__ import annotations

# By operation id in the OpenAPI document: the title, and the rest of the sentence "Use it …".
TOOLS: dict[str, tuple[str, str]] = {
    # The service
    "health": ("Service health", "to check that the service responds, before anything else."),
    "time": ("Server time", "when a question says now, today or an hour ago, and the data's clock matters."),
    "stats": ("Platform totals", "for the total number of markets and trades, and the day's volume."),
    "pipeline_status": (
        "Data freshness",
        "when a result looks old or empty, to see which stage of the pipeline is late.",
    ),
    "coverage": (
        "Coverage",
        "to check which days and kinds of data are complete before basing an analysis on them.",
    ),
    "market_coverage": (
        "Coverage of a market",
        "to check for gaps in a market's history before drawing conclusions from it.",
    ),
    # Finding markets
    "search_markets": ("Search markets", "first, when a market is known only by keywords: it returns the `market_id`."),
    "markets": ("List markets", "to page through all markets, or those of a state, category, tag or series."),
    "top_markets": ("Busiest markets", "for the markets with the most trading in an hour, a day or a week."),
    "trending_markets": ("Trending markets", "for markets where trading has picked up within the last hour."),
    "breaking_markets": ("Biggest movers", "for markets whose price has just moved, for example after news."),
    "new_markets": ("New markets", "for recently listed markets."),
    "resolving_markets": ("Markets about to end", "for markets that end within hours or days."),
    "markets_by_timeframe": ("Markets by time left", "for short-lived markets, such as five-minute prices of a coin."),
    "categories": ("Categories", "to learn the slugs that other tools take as `category`."),
    "category_markets": ("Markets of a category", "when the category's slug is known."),
    "tags": ("Tags", "to learn the slugs that other tools take as `tag`."),
    "series": ("Series", "to learn the names that other tools take as `series`."),
    "events": ("Events of the exchange", "for groups of markets about one topic, as the exchange lists them now."),
    "event_markets": (
        "Markets of an event",
        "when the `event_id` of a market is known, for all markets of that event.",
    ),
    "related_markets": ("Related markets", "for other markets of the same event."),
    "market_equivalents": (
        "The same question elsewhere",
        "for markets of another exchange that may ask the same, with the clause that tells them apart.",
    ),
    # One market
    "market": ("Market in full", "for all details of one market: question, outcomes, price, book, last day."),
    "market_summary": ("Market summary", "for a market's price, signals and last day in one short result."),
    "market_stats": ("Market's last 24 hours", "for its open, high, low, close, volume and change over 24 hours."),
    "market_health": ("Freshness of a market", "when one market's price or book seems old or is missing."),
    "market_sentiment": ("Market sentiment", "for a one-word sentiment: bullish, bearish or neutral."),
    "compare_markets": ("Compare markets", "to compare up to ten markets side by side."),
    # Prices
    "market_price": ("Live price", "for one outcome's current bid, ask, mid and last trade."),
    "prices": ("Live prices of several markets", "instead of many single calls when several markets are needed."),
    "market_orderbook": ("Order book", "for bid and ask levels, now or (with `at`) at a past time."),
    "market_orderbook_history": ("Order book over time", "for how a book has changed, at even time steps."),
    "market_liquidity": ("Liquidity", "for spread and depth in brief, to judge whether a size can be traded."),
    "market_price_history": ("Price history", "for candles of any range: a chart, a trend, a past price."),
    "market_candles": ("Candles for charts", "only to feed a charting library; otherwise use the price history."),
    # Trades and signals
    "market_trades": (
        "Trades of a market",
        "for single trades of one or all outcomes, the newest or those of a time range.",
    ),
    "recent_trades": ("Newest trades", "for the newest trades across all markets, and their wallets."),
    "market_signals": ("Signals of a market", "for notable activity in one market: momentum, volume, whales."),
    "top_signals": (
        "Strongest signals",
        "for the most notable activity across all markets within a day, such as whale trades.",
    ),
    # Wallets
    "leaderboard": ("Leading wallets", "to find notable wallets, by volume or profit."),
    "wallet_summary": ("Wallet summary", "first, for a wallet's totals before its single trades."),
    "wallet_pnl": ("Profit and loss of a wallet", "for a wallet's profit by market. It is the most expensive tool."),
    "wallet_markets": (
        "Markets of a wallet",
        "for the markets that a wallet has traded, and its net position in each.",
    ),
    "wallet_open_positions": (
        "Open positions from the chain",
        "for a wallet's open positions, computed from its settlements.",
    ),
    "wallet_onchain": ("Settled trades of a wallet", "for any wallet's single trades of the last 14 days."),
    "wallet_activity": ("Activity of a watched wallet", "for a wallet's activity since it has been watched."),
    "watched_wallets": ("Watched wallets", "to see which wallets this account watches."),
    "watch_wallet": ("Watch a wallet", "when the user wants to follow a wallet from now on. It changes the account."),
    "unwatch_wallet": ("Stop watching a wallet", "only when the user asks to stop following a wallet."),
    "positions": ("Positions of a wallet", "for a wallet's current positions as reported by the exchange."),
    "closed_positions": (
        "Closed positions of a wallet",
        "for positions that a wallet has sold or redeemed, with their result.",
    ),
    "market_positions": ("Holders of a market", "for the largest holders of a market's outcomes."),
    # Webhooks and exports
    "webhooks": ("Webhooks", "to see the configured webhooks before changing them."),
    "create_webhook": (
        "Create a webhook",
        (
            "when the user wants events sent to a URL of theirs. No secret is shown to models: tell the user to get "
            "one by POST /v1/webhooks/{id}/rotate-secret, to configure it in the receiver, and to finish the rotation."
        ),
    ),
    "webhook": ("Webhook", "for one webhook's filters and state."),
    "change_webhook": ("Change a webhook", "when the user wants other events, another URL, or a pause."),
    "remove_webhook": ("Remove a webhook", "only when the user asks to remove it: it cannot be undone."),
    "verify_webhook": ("Verify a webhook", "once a pending webhook's receiver is ready to repeat the challenge."),
    "test_webhook": ("Test a webhook", "to check whether a URL accepts deliveries."),
    "webhook_deliveries": (
        "Deliveries of a webhook",
        "when something did not arrive, for the attempts and their responses.",
    ),
    "redeliver": ("Redeliver", "when the receiver has lost a message or has recovered."),
    "exports": ("Exports", "to find files of whole days, for more data than fits into responses."),
    "export_manifest": ("Files of an export", "for a day's files with their rows, sizes and checksums."),
    # Charts: TradingView's protocol
    "udf_config": ("Chart feed: configuration", "only to set up TradingView's charting library."),
    "udf_symbols": ("Chart feed: a symbol", "only where a charting library requests a symbol's description."),
    "udf_search": (
        "Chart feed: search",
        "only where a charting library searches for symbols; otherwise search the markets.",
    ),
    "udf_history": (
        "Chart feed: bars",
        "only where a charting library requests bars; otherwise use the price history.",
    ),
    "udf_time": ("Chart feed: clock", "only where a charting library requests the time."),
    "udf_quotes": (
        "Chart feed: quotes",
        "only where a charting library requests quotes; otherwise use the live prices.",
    ),
    "udf_marks": ("Chart feed: marks", "for large trades and status changes as marks on a chart."),
    "udf_timescale_marks": ("Chart feed: timescale marks", "for when a market was listed, ends and was resolved."),
}


def title(name: str) -> str:
    """Return a tool's human-readable title."""
    return TOOLS[name][0] if name in TOOLS else name.replace("_", " ").capitalize()


def description(name: str, operation: dict[str, object]) -> str:
    """Return a tool's description: what it returns, when to use it, and its cost."""
    parts = [f"{operation['summary']}.", operation.get("description", "")]
    if name in TOOLS:
        parts.append(f"Use it {TOOLS[name][1]}")
    parts.append(f"Credits: {operation['x-credits']}.")
    return " ".join(str(part) for part in parts if part)
