"""Pairs of market texts of our own, in the wording of both exchanges, with the verdict that reading them gives."""

from __future__ import annotations

from typing import NamedTuple

from orchestration.equivalents.questions import MarketText


class Pair(NamedTuple):
    name: str
    polymarket: MarketText
    kalshi: MarketText
    verdict: str
    clause: str | None
    within: str | None = None


def polymarket(title, rules, outcomes=("Yes", "No"), closes_at="2026-12-31T00:00:00Z"):
    return MarketText("polymarket", "0x01", title, rules, outcomes=outcomes, closes_at=closes_at)


def kalshi(rules, title="", label="", more_rules="", **strike):
    return MarketText(
        "kalshi",
        "KX-1",
        title,
        rules,
        more_rules,
        label,
        label_names_yes=True,
        closes_at="2026-12-31T15:00:00Z",
        **strike,
    )


OTHERWISE = "Otherwise, this market will resolve to “No”."
NO_NOMINEE = "If no nominee is announced by November 3, 2026, 11:59 PM ET, this market will resolve to “Other”."
RECORD = "The resolution source for this market will be a consensus of official party sources."


def house(person="Ada Byron", party="Republican", seat="FL-19", rest=f"{NO_NOMINEE} {RECORD}"):
    return polymarket(
        f"Will {person} be the {party} nominee for {seat}?",
        f"This market will resolve according to the candidate who wins the nomination for the {party} Party to contest the {seat} "
        f"congressional district seat in the U.S. House of Representatives in the 2026 midterm elections. {rest}",
    )


def nominee(person="Ada Byron", party="Republican", seat="FL-19", label=None, year=2026):
    return kalshi(
        f"If {person} wins the nomination for the {party} Party to contest the {year} {seat} House seat, then the market resolves to Yes.",
        f"Who will be the {party} nominee for {seat}?",
        person if label is None else label,
    )


def binance(
    how="above", amount="$100,000", at="5 PM ET on May 15, 2026", pair="BTC/USDT", source="Binance", rest=OTHERWISE
):
    return polymarket(
        f"Bitcoin {how} {amount}?",
        f"This market will resolve to “Yes” if the {source} price of {pair} is {how} {amount} at {at}. {rest}",
    )


def spot(
    how="above", amount="100000", at="5 PM ET on May 15, 2026", pair="BTC/USDT", source="Binance", rest="", **strike
):
    return kalshi(
        f"If the {source} price of {pair} is {how} {amount} at {at}, then the market resolves to Yes.",
        more_rules=rest,
        **strike,
    )


def high(
    how="equal to or greater than",
    amount="$5,000",
    start="January 1, 2026 12:00 AM ET",
    until="June 30, 2026 11:59 PM ET",
):
    return polymarket(
        "Will Ethereum reach it?",
        f"This market will immediately resolve to “Yes” if any Binance 1 minute candle for ETH/USDT between {start} and {until} has a "
        f"final “High” price {how} {amount}. {OTHERWISE}",
    )


def touched(
    how="equal to or greater than",
    amount="5000",
    start="January 1, 2026 12:00 AM ET",
    until="June 30, 2026 11:59 PM ET",
):
    return kalshi(
        f"If any Binance 1 minute candle for ETH/USDT between {start} and {until} has a final High price {how} {amount}, "
        "then the market resolves to Yes."
    )


LATE = "If the game is not completed by September 5, 2026, 11:59 PM ET, this market will resolve 50-50."
CANCELLED = "If the game is canceled entirely, with no make-up game, this market will resolve 50-50."


def game(team="Lions", rival="Bears", date="August 28", league="NBA", rest=f"{LATE} {CANCELLED}"):
    return polymarket(
        f"{league}: {team} vs {rival}",
        f"In the upcoming {league} game, scheduled for {date} at 7:00 PM ET: If the {team} win, the market will resolve to “{team}”. "
        f"If the {rival} win, the market will resolve to “{rival}”. {rest}",
        (team, rival),
        "2026-08-28T00:00:00Z",
    )


def winner(team="Lions", first="Lions", second="Bears", date="Aug 28, 2026", sport="NBA", rest=f"{LATE} {CANCELLED}"):
    return kalshi(
        f"If {team} wins the {first} vs {second} professional {sport} game originally scheduled for {date}, then the market resolves to Yes.",
        label=team,
        more_rules=rest,
    )


def heat(
    how="between", amount="89-90°", date="June 13, 2026", place="Central Park", source="the National Weather Service"
):
    return f"the highest temperature recorded in {place} for {date} as reported by {source} is {how} {amount}"


def asked(condition):
    return polymarket("How hot?", f"This market will resolve to “Yes” if {condition}. {OTHERWISE}")


def settled(condition, **strike):
    return kalshi(f"If {condition}, then the market resolves to Yes.", **strike)


def bound(how="above", amount="4.25%", date="April 28, 2027"):
    return f"the upper bound of the target federal funds rate is {how} {amount} following the meeting of {date}"


def figure(
    how="above",
    amount="0.3%",
    period="June 2026",
    source="the Bureau of Labor Statistics",
    what="the monthly change of CPI-U",
):
    return f"{what} for {period} as first published by {source} is {how} {amount}"


def senate(state="Ohio", year=2026, party="Democrats"):
    return polymarket(
        f"Will the {party} win the {state} Senate race in {year}?",
        f"This market will resolve according to the winner of the {year} {state} U.S. Senate election, inclusive of any run-offs. "
        "The resolution source for this market is the Associated Press, Fox News, and NBC.",
    )


def sworn(state="Ohio", term=2027, party="Democratic"):
    return kalshi(
        f"If a representative of the {party} party is sworn in as a Senator of {state} for the term beginning in {term}, "
        "then the market resolves to Yes."
    )


def president(person="Ada Byron", place="Brazil", year=2026, rest=""):
    return polymarket(
        f"Will {person} win the {year} {'Brazilian' if place == 'Brazil' else place} presidential election?",
        f"Presidential elections are scheduled to be held in {place} on October 4, {year}. This market will resolve according to the listed "
        f"candidate who wins this election. This market includes any potential second round. {rest}",
    )


def elected(person="Ada Byron", place="Brazilian", year=2026):
    return kalshi(
        f"If {person} has won the {year} {place} presidential election, then the market resolves to Yes.", label=person
    )


UNKNOWN = (
    "If the result of this election isn't known by June 30, 2027, 11:59 PM ET, the market will resolve to “Other”."
)

PAIRS = (
    Pair("one nomination", house(), nominee(), "identical", None),
    Pair("a seat with a leading zero", house(seat="AZ-05"), nominee(seat="AZ-5"), "identical", None),
    Pair("accents and case", house("José MUÑOZ"), nominee("Jose Munoz"), "identical", None),
    Pair("typographic dashes", house("Ann Lee\u2013Poe"), nominee("Ann Lee-Poe"), "identical", None),
    Pair("another candidate", house(), nominee("Charles Babbage"), "related", "subject"),
    Pair("another spelling", house("Ada Byronn"), nominee(), "unreadable", "subject"),
    Pair("a name within a name", house("Ada Byron King"), nominee(), "unreadable", "subject"),
    Pair("another party", house(), nominee(party="Democratic"), "different", "event"),
    Pair("another seat", house(), nominee(seat="FL-20"), "different", "event"),
    Pair("digits of a seat swapped", house(seat="CA-14"), nominee(seat="CA-41"), "different", "event"),
    Pair("another year", house(), nominee(year=2028), "different", "window"),
    Pair("a label against the rules", house(), nominee(label="Charles Babbage"), "unreadable", "subject"),
    Pair(
        "a sentence that nobody knows",
        house(rest=f"{NO_NOMINEE} {RECORD} Ties are resolved by coin."),
        nominee(),
        "unreadable",
        "event",
    ),
    Pair(
        "a void rule that nobody knows",
        house(rest=f"{RECORD} If she withdraws, this market resolves early."),
        nominee(),
        "unreadable",
        "void",
    ),
    Pair(
        "two candidates in one slot", house(), nominee("Ada Byron or Charles Babbage", label=""), "unreadable", "event"
    ),
    Pair("an exception in a slot", house(), nominee("Ada Byron unless indicted", label=""), "unreadable", "event"),
    Pair("one price", binance(), spot(), "identical", None),
    Pair("the API's strike agrees", binance(), spot(strike_type="greater", floor_strike=100000), "identical", None),
    Pair(
        "the API's strike is another",
        binance(),
        spot(strike_type="greater", floor_strike=90000),
        "unreadable",
        "threshold",
    ),
    Pair(
        "the API's strike is inclusive",
        binance(),
        spot(strike_type="greater_or_equal", floor_strike=100000),
        "unreadable",
        "threshold",
    ),
    Pair(
        "zones of one instant",
        binance(at="5 PM ET on May 15, 2026"),
        spot(at="9 PM UTC on May 15, 2026"),
        "identical",
        None,
    ),
    Pair("a zone that is not stated", binance(at="5 PM on May 15, 2026"), spot(), "unreadable", "window"),
    Pair("an hour later", binance(), spot(at="6 PM ET on May 15, 2026"), "related", "window"),
    Pair("above or below", binance(), spot("at or below"), "inverted", "threshold"),
    Pair("above, and strictly below", binance(), spot("below"), "related", "threshold"),
    Pair("strict and inclusive", binance(), spot("at or above"), "subset", "threshold", "left"),
    Pair("a lower threshold", binance(), spot(amount="90,000"), "subset", "threshold", "left"),
    Pair("a higher threshold", binance(), spot(amount="110,000.50"), "subset", "threshold", "right"),
    Pair("thousands as k", binance(amount="$100k"), spot(), "identical", None),
    Pair("another source", binance(), spot(source="Coinbase"), "related", "source"),
    Pair("another pair", binance(), spot(pair="ETH/USDT"), "different", "event"),
    Pair(
        "one void rule",
        binance(rest="If no data is available, this market resolves to No."),
        spot(rest="If no data is available, the market resolves to No."),
        "identical",
        None,
    ),
    Pair(
        "a void rule of one",
        binance(),
        spot(rest="If no data is available, the market resolves to No."),
        "related",
        "void",
    ),
    Pair(
        "both void to No, inverted",
        binance(rest="If no data is available, this market resolves to No."),
        spot("at or below", rest="If no data is available, the market resolves to No."),
        "related",
        "void",
    ),
    Pair("one window", high(), touched(), "identical", None),
    Pair("a window within", high(until="May 31, 2026 11:59 PM ET"), touched(), "subset", "window", "left"),
    Pair(
        "windows that overlap",
        high(start="February 1, 2026 12:00 AM ET", until="July 31, 2026 11:59 PM ET"),
        touched(),
        "related",
        "window",
    ),
    Pair(
        "a window and a threshold, opposed",
        high(until="May 31, 2026 11:59 PM ET", amount="$4,000"),
        touched(),
        "related",
        "threshold",
    ),
    Pair(
        "a window and a threshold, alike",
        high(until="May 31, 2026 11:59 PM ET", amount="$6,000"),
        touched(),
        "subset",
        "threshold",
        "left",
    ),
    Pair("above once, below once", high(), touched("below"), "related", "threshold"),
    Pair("one game", game(), winner(), "identical", None),
    Pair("the other side of a game", game(), winner("Bears"), "inverted", "subject"),
    Pair("another day", game(), winner(date="Aug 29, 2026"), "different", "window"),
    Pair("another pair of teams", game(), winner(second="Hawks"), "different", "event"),
    Pair(
        "another last day",
        game(),
        winner(rest=f"{CANCELLED} {LATE.replace('September 5', 'September 6')}"),
        "related",
        "void",
    ),
    Pair(
        "half against a fair price",
        game(),
        winner(rest=f"{LATE} If the game is canceled, the market resolves to a fair price."),
        "related",
        "void",
    ),
    Pair("a tie that is not spoken of", game(league="NFL"), winner(sport="NFL"), "unreadable", "void"),
    Pair("one day's heat", asked(heat()), settled(heat()), "identical", None),
    Pair("whole degrees", asked(heat("above", "89°")), settled(heat("at least", "90°")), "identical", None),
    Pair(
        "whole degrees, inverted", asked(heat("above", "89°")), settled(heat("at most", "89°")), "inverted", "threshold"
    ),
    Pair(
        "whole degrees, inverted by less than",
        asked(heat("at least", "90°")),
        settled(heat("less than", "90°")),
        "inverted",
        "threshold",
    ),
    Pair("a bracket within", asked(heat()), settled(heat("at least", "85°")), "subset", "threshold", "left"),
    Pair("brackets side by side", asked(heat()), settled(heat(amount="91-92°")), "related", "threshold"),
    Pair("another station", asked(heat()), settled(heat(place="LaGuardia")), "different", "event"),
    Pair("another reporter", asked(heat(source="Wunderground")), settled(heat()), "related", "source"),
    Pair("another day's heat", asked(heat()), settled(heat(date="June 14, 2026")), "related", "window"),
    Pair("one decision", asked(bound()), settled(bound()), "identical", None),
    Pair("one decision, inverted", asked(bound()), settled(bound("at or below")), "inverted", "threshold"),
    Pair("a higher bound", asked(bound()), settled(bound(amount="4.00%")), "subset", "threshold", "left"),
    Pair("another meeting", asked(bound()), settled(bound(date="June 16, 2027")), "related", "window"),
    Pair("one figure", asked(figure()), settled(figure()), "identical", None),
    Pair("a figure, inclusive", asked(figure()), settled(figure("at least")), "subset", "threshold", "left"),
    Pair("another period", asked(figure()), settled(figure(period="July 2026")), "different", "window"),
    Pair("another figure", asked(figure()), settled(figure(what="the yearly change of CPI-U")), "different", "event"),
    Pair("elected, and sworn in", senate(), sworn(), "related", "event"),
    Pair("another term", senate(), sworn(term=2029), "different", "window"),
    Pair("another state", senate(), sworn("Iowa"), "different", "event"),
    Pair("no state", senate("Ruritania"), sworn("Ruritania"), "unreadable", "event"),
    Pair("one election", president(), elected(), "identical", None),
    Pair("an election with a last day", president(rest=UNKNOWN), elected(), "subset", "window", "left"),
    Pair("another person", president(), elected("Charles Babbage"), "related", "subject"),
    Pair("another country", president(place="Peru"), elected(), "different", "event"),
    Pair(
        "a title that asks the opposite",
        polymarket("Will Ada Byron not win?", president().rules),
        elected(),
        "unreadable",
        "subject",
    ),
    Pair("nothing in common", president(), spot(), "different", "event"),
    Pair("no rules", polymarket("Will Ada Byron win?", ""), elected(), "unreadable", "event"),
    Pair(
        "no name in common",
        polymarket("Zorblatt out?", "Zorblatt is a thing."),
        kalshi("Quuxly happens."),
        "different",
        "subject",
    ),
)
