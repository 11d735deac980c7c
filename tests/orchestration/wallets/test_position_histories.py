"""Positions and profit, compared with exact fractions over random histories."""

from __future__ import annotations

import datetime as dt
import os
import time
from collections import defaultdict
from fractions import Fraction

import hypothesis
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from orchestration.wallets import positions
from sql import database
from tests import factories
from tests.orchestration.wallets.chain import START, Chain, address, pnl
from tests.orchestration.wallets.exact import Book

WALLETS = ["ann", "bob", "cid"]
# Two outcomes each; the three of an event also convert: No of some into Yes of the others.
MARKETS = {"rain": ("11", "12"), "north": ("21", "22"), "south": ("31", "32"), "east": ("41", "42")}
EVENT = ["north", "south", "east"]
TOKENS = [token for pair in MARKETS.values() for token in pair]
EXACT = Fraction(1, 10**6)
LONG = os.environ.get("HYPOTHESIS_PROFILE") == "fuzz"

sizes = st.integers(1, 3_000_000).map(lambda size: Fraction(size, 1000))
prices = st.one_of(st.none(), st.integers(1, 999).map(lambda mill: f"0.{mill:03}"))
pairs = st.permutations(WALLETS).map(lambda names: names[:2])


def decimal(number):
    return f"{number.numerator * 10**6 // number.denominator / 10**6:.6f}"


@st.composite
def matches(draw):
    maker, taker = draw(pairs)
    return {
        "token": draw(st.sampled_from(TOKENS)),
        "price": draw(prices),
        "size": decimal(draw(sizes)),
        "maker": maker,
        "taker": taker,
        "side": draw(st.sampled_from([1, -1])),
        "fee": decimal(draw(st.integers(0, 9)) * Fraction(1, 7)),
        "alone": draw(st.booleans()),
    }


class Histories(RuleBasedStateMachine):
    """Blocks come, go and arrive late, while the job runs now and then."""

    conn = None
    compared = 0

    @initialize()
    def begin(self):
        self.conn.rollback()
        self.conn.execute("select")
        self.markets = {
            name: factories.add_market(self.conn, name, token_ids=list(tokens)) for name, tokens in MARKETS.items()
        }
        self.chain = Chain(self.conn)
        self.blocks = {}  # number: events, in order
        self.late = []  # numbers left free for late blocks
        self.next = 1
        self.final = 0
        self.payouts = {}
        self.based = -1

    def teardown(self):
        self.conn.rollback()

    # --- Events

    def add(self, number, happened):
        self.blocks[number] = happened
        self.chain.block(
            number,
            *(each for kind, each in happened if kind == "match"),
            entries=[entry for kind, each in happened if kind != "match" for entry in self.entries(kind, each)],
            live=False,
        )
        self.chain.head(self.next, self.final)

    def new(self, happened):
        if self.next % 3 == 0:
            self.late.append(self.next)
            self.next += 1
        self.add(self.next, happened)
        self.next += 1

    def entries(self, kind, each):
        condition = None
        if kind in ("split", "merge", "redeem", "resolution"):
            condition = bytes.fromhex(self.markets[each["market"]]["market_id"][2:])
        moved = {
            "split": lambda: [(token, each["amount"]) for token in MARKETS[each["market"]]],
            "merge": lambda: [(token, -each["amount"]) for token in MARKETS[each["market"]]],
            "convert": lambda: (
                [(token, -each["amount"]) for token in each["given"]]
                + [(token, each["amount"]) for token in each["got"]]
            ),
            "redeem": lambda: [(token, -count) for token, count in each["shares"].items() if count],
        }
        if kind == "transfer":
            (sender, receiver), token, amount = each["pair"], each["token"], decimal(each["amount"])
            yield {
                "kind": kind,
                "wallet": sender,
                "counterparty": receiver,
                "token": token,
                "amount": f"-{amount}",
            }
            yield {
                "kind": kind,
                "wallet": receiver,
                "counterparty": sender,
                "token": token,
                "amount": amount,
            }
        elif kind == "resolution":
            yield {"kind": kind, "condition": condition, "detail": {"numerators": each["numerators"]}}
        else:
            amount = each["amount"]
            if kind == "redeem":
                amount = sum(count * each["payouts"][token] for token, count in each["shares"].items())
            row = {"kind": kind, "wallet": each["wallet"], "amount": decimal(amount), "condition": condition}
            seen = each.get("seen", True)
            if seen:
                row["tokens"] = [
                    (token, decimal(abs(count)) if count > 0 else f"-{decimal(-count)}")
                    for token, count in moved[kind]()
                ]
            yield row

    @rule(happened=st.lists(matches(), min_size=1, max_size=4))
    def trade(self, happened):
        self.new([("match", match) for match in happened])

    @rule(wallet=st.sampled_from(WALLETS), market=st.sampled_from(sorted(MARKETS)), amount=sizes, seen=st.booleans())
    def split(self, wallet, market, amount, seen):
        self.new([("split", {"wallet": wallet, "market": market, "amount": amount, "seen": seen})])

    @rule(wallet=st.sampled_from(WALLETS), market=st.sampled_from(sorted(MARKETS)), amount=sizes, seen=st.booleans())
    def merge(self, wallet, market, amount, seen):
        self.new([("merge", {"wallet": wallet, "market": market, "amount": amount, "seen": seen})])

    @rule(wallet=st.sampled_from(WALLETS), given=st.sets(st.sampled_from(EVENT), min_size=1, max_size=2), amount=sizes)
    def convert(self, wallet, given, amount):
        event = {"wallet": wallet, "amount": amount}
        event["given"] = [MARKETS[market][1] for market in sorted(given)]
        event["got"] = [MARKETS[market][0] for market in EVENT if market not in given]
        self.new([("convert", event)])

    @rule(pair=pairs, token=st.sampled_from(TOKENS), amount=sizes)
    def transfer(self, pair, token, amount):
        self.new([("transfer", {"pair": pair, "token": token, "amount": amount})])

    @rule(market=st.sampled_from(sorted(MARKETS)), numerators=st.sampled_from([[1, 0], [0, 1], [1, 1]]))
    def resolve(self, market, numerators):
        if market in self.payouts:
            return
        self.payouts[market] = [Fraction(each, sum(numerators)) for each in numerators]
        self.final = max(self.final, self.next)  # a resolution stands: redemptions depend on it
        self.new([("resolution", {"market": market, "numerators": numerators})])
        self.final = self.next
        self.conn.execute(
            "update markets set status = 'RESOLVED', outcome_prices = %s where slug = %s",
            [[int(payout * 10**6) for payout in self.payouts[market]], market],
        )

    @precondition(lambda self: self.payouts)
    @rule(wallet=st.sampled_from(WALLETS), counts=st.tuples(sizes, sizes), which=st.randoms(use_true_random=False))
    def redeem(self, wallet, counts, which):
        market = which.choice(sorted(self.payouts))
        shares = dict(zip(MARKETS[market], counts, strict=True))
        payouts = dict(zip(MARKETS[market], self.payouts[market], strict=True))
        self.new([("redeem", {"wallet": wallet, "market": market, "amount": 0, "shares": shares, "payouts": payouts})])

    # --- Changes of the chain

    @precondition(lambda self: self.late)
    @rule(happened=st.lists(matches(), min_size=1, max_size=2), which=st.randoms(use_true_random=False))
    def turn_up_late(self, happened, which):
        number = self.late.pop(which.randrange(len(self.late)))
        self.add(number, [("match", match) for match in happened])

    @rule(depth=st.integers(1, 4))
    def reorganise(self, depth):
        gone = [number for number in sorted(self.blocks)[-depth:] if number > max(self.final, self.based)]
        if gone:
            self.chain.remove(*gone)
            for number in gone:
                del self.blocks[number]

    @precondition(lambda self: any(number > self.based for number in self.blocks))
    @rule(which=st.randoms(use_true_random=False))
    def lose_a_final_block(self, which):
        """Should never happen: a block that was final is removed."""
        number = which.choice(sorted(number for number in self.blocks if number > self.based))
        if not any(kind == "resolution" for kind, _ in self.blocks[number]):
            self.chain.remove(number)
            del self.blocks[number]
            self.late.append(number)

    @rule(by=st.integers(0, 6))
    def finalise(self, by):
        self.final = min(self.next - 1, self.final + by)
        self.chain.head(self.next - 1, self.final)

    @rule(rows=st.sampled_from([1, 3, 1000]), due=st.sampled_from([1, 1000]))
    def run_the_job(self, rows, due):
        passed = positions.bring_up_to_date(self.conn, START + dt.timedelta(days=1), rows=rows, due=due)
        assert (passed.due, passed.behind) == (0, 0)
        self.totals_are_exact()

    @rule(share=st.floats(0, 1))
    def forget_the_oldest_rows(self, share):
        """Retention: what it drops is in the bases before, and nothing changes there any more."""
        self.run_the_job(1000, 1000)
        edge = int(self.final * share)
        limits = positions.PassLimits(
            START, self.chain.ts(edge) + dt.timedelta(seconds=1), time.monotonic() + 60, 3, 1000
        )
        positions._move_bases(self.conn, positions.PositionsPass(), limits)
        self.based = self.conn.execute("select base_block from positions_head").fetchone()[0]
        for table in ("wallet_fills", "position_changes", "ledger_entries", "settlements"):
            self.conn.execute(f"delete from {table} where block_number <= %s", [self.based])
        self.late = [number for number in self.late if number > self.based]

    # --- Invariants

    def expected(self):
        book = Book()
        for number in sorted(self.blocks):
            happened = self.blocks[number]
            for kind, each in [
                *(one for one in happened if one[0] == "match"),
                *(one for one in happened if one[0] != "match"),
            ]:
                if kind == "match":
                    book.match(each)
                elif kind in ("split", "merge"):
                    getattr(book, kind)(each["wallet"], each["amount"], MARKETS[each["market"]])
                elif kind == "convert":
                    book.convert(each["wallet"], each["amount"], each["given"], each["got"])
                elif kind == "redeem":
                    book.redeem(each["wallet"], each["shares"], each["payouts"])
                elif kind == "transfer":
                    book.transfer(*each["pair"], each["token"], each["amount"])
        return book.positions

    def due(self):
        rows = self.conn.execute("select wallet, token_key from positions_due").fetchall()
        names = {key: token for token, key in self.chain.keys.items()}
        names |= dict(self.conn.execute("select token_key, token_id from chain_tokens").fetchall())
        owners = {address(name): name for name in WALLETS}
        return {(owners[wallet], names[key]) for wallet, key in rows}

    def totals_are_exact(self):
        """Right after the job, of what was final for it."""
        done = self.conn.execute("select done from positions_head").fetchone()[0]
        fills = defaultdict(Fraction)
        counts = defaultdict(int)
        for number, happened in self.blocks.items():
            for match in (each for kind, each in happened if kind == "match" and number <= done):
                value = Fraction(round(Fraction(match["price"] or 0) * Fraction(match["size"]) * 10**6))
                for wallet in (match["maker"], match["taker"]):
                    fills[address(wallet)] += value
                    counts[address(wallet)] += 1
        expected = {wallet: (fills[wallet], count) for wallet, count in counts.items()}
        selects = ["select wallet, volume_usd, buys + sells from wallet_totals"]
        if (
            self.based < 0
        ):  # bases end with a day; those here end anywhere, and no hour is counted from half of its rows
            selects += [
                "select wallet, sum(volume_usd), sum(trades) from wallet_days group by wallet",
                "select wallet, sum(volume_usd), sum(trades) from wallet_hours group by wallet",
            ]
        for select in selects:
            rows = {wallet: (Fraction(volume), count) for wallet, volume, count in self.conn.execute(select).fetchall()}
            assert rows == expected, select

    @invariant()
    def positions_are_exact(self):
        if not hasattr(self, "blocks"):
            return
        expected, due = self.expected(), self.due()
        for wallet in WALLETS:
            rows = self.conn.execute(
                "select token_id, held, covered, cost_usd, realized_usd, left_out, buys, bought, sells, sold"
                " from positions_now(%s) join chain_tokens using (token_key)",
                [address(wallet)],
            ).fetchall()
            found = {token: [Fraction(each) for each in row] for token, *row in rows}
            for token in TOKENS:
                if (wallet, token) in due:
                    continue
                exact = expected.get((wallet, token))
                row = found.get(token)
                if exact is None:
                    assert row is None or not any(row), (wallet, token, row)
                    continue
                assert row is not None, (wallet, token)
                held, covered, cost, realized, left_out, buys, bought, sells, sold = row
                assert (held, covered) == (exact.held * 10**6, exact.covered * 10**6), (wallet, token)
                assert abs(cost - exact.cost * 10**6) < EXACT, (wallet, token)
                assert abs(realized - exact.realized * 10**6) < EXACT, (wallet, token)
                assert left_out == exact.left_out, (wallet, token)
                assert (buys, sells) == (exact.buys, exact.sells)
                assert (bought, sold) == (exact.bought * 10**6, exact.sold * 10**6)
                Histories.compared += 1


def test_positions_are_those_of_exact_fractions_property(database_url):
    with database.connect(database_url) as conn:
        Histories.conn = conn
        run_state_machine_as_test(
            Histories,
            settings=hypothesis.settings(
                max_examples=1000 if LONG else 12,
                stateful_step_count=50 if LONG else 30,
                deadline=None,
                suppress_health_check=list(hypothesis.HealthCheck),
            ),
        )

    assert Histories.compared > 0


traded = st.lists(
    st.tuples(pairs, st.sampled_from([0, 1]), sizes, st.integers(1, 999), st.integers(0, 9), st.integers(0, 3)),
    max_size=12,
)


@hypothesis.settings(max_examples=500 if LONG else 15, suppress_health_check=list(hypothesis.HealthCheck))
@hypothesis.given(traded, st.sampled_from([[1, 0], [0, 1], [1, 1]]), st.booleans())
def test_all_wallets_of_a_closed_market_have_earned_nothing_but_paid_fees_property(conn, trades, numerators, job):
    with conn.transaction(force_rollback=True):
        market = factories.add_market(conn, token_ids=["11", "12"])
        condition = bytes.fromhex(market["market_id"][2:])
        chain, book, fees, number = Chain(conn), Book(), 0, 0
        for number, ((buyer, seller), outcome, size, price, fee, more) in enumerate(trades, 1):
            # A seller has split before: all shares come from collateral, as they do on chain.
            split = {"kind": "split", "wallet": seller, "amount": decimal(size), "condition": condition}
            merge = {**split, "kind": "merge", "wallet": buyer, "amount": decimal(size / 1000)}
            token, other = ("11", "12")[outcome], ("12", "11")[outcome]
            chain.block(number * 3, entries=[split])
            match = {"token": token, "price": f"0.{price:03}", "size": decimal(size), "fee": f"0.{fee}"}
            chain.block(number * 3 + 1, {**match, "maker": buyer, "taker": seller})
            book.split(seller, size, ("11", "12"))
            book.match({**match, "maker": buyer, "taker": seller})
            fees += Fraction(fee, 10)
            if more == 0 and book.of(buyer, other).covered >= size / 1000:
                chain.block(number * 3 + 2, entries=[merge])
                book.merge(buyer, Fraction(decimal(size / 1000)), ("11", "12"))
        payouts = dict(zip(("11", "12"), (Fraction(each, sum(numerators)) for each in numerators), strict=True))
        last = number * 3 + 10
        chain.block(
            last, entries=[{"kind": "resolution", "condition": condition, "detail": {"numerators": numerators}}]
        )
        conn.execute(
            "update markets set status = 'RESOLVED', outcome_prices = %s where market_key = %s",
            [[int(payout * 10**6) for payout in payouts.values()], market["market_key"]],
        )
        if job:
            chain.head(last)
            positions.bring_up_to_date(conn, START + dt.timedelta(days=1))

        answers = {wallet: pnl(conn, wallet) for wallet in WALLETS}

        assert abs(sum(Fraction(str(answer["total_pnl"])) for answer in answers.values()) + fees) <= 3 * EXACT
        for wallet, answer in answers.items():
            exact = sum(
                position.pnl(payouts[token]) for (owner, token), position in book.positions.items() if owner == wallet
            )
            assert abs(Fraction(str(answer["total_pnl"])) - exact) <= EXACT
            assert answer["markets_missing_cost_basis"] == 0
            assert answer["total_unrealized_pnl"] == 0
