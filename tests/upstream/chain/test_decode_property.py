"""Property tests: decoding returns what an independent encoder wrote, and nothing raises."""

from __future__ import annotations

from fractions import Fraction

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.upstream.chain.encoded import (
    ADAPTER,
    INDEX,
    NEG_RISK_V1,
    NEG_RISK_V2,
    TOKENS,
    USDC,
    V1,
    V2,
    Chain,
    condition,
    tx_hash,
    wallet,
)
from upstream.chain.contracts import POLYGON
from upstream.chain.decode import decode
from upstream.chain.decoded import COUNTED
from upstream.chain.wire import RawLog

MAX_AMOUNT = 2**63 - 1

wallets = st.integers(0, 5).map(wallet)
hashes = st.binary(min_size=32, max_size=32)
conditions = st.integers(0, 3).map(condition)
token_ids = st.integers(1, 2**256 - 1) | st.integers(1, 9)
words = st.integers(0, 2**256 - 1)
amounts = (
    st.integers(0, 10)
    | st.integers(0, 10**12)
    | st.integers(0, MAX_AMOUNT)
    | st.sampled_from([0, MAX_AMOUNT, MAX_AMOUNT + 1])
)
small = st.integers(0, 10**12)

fill_v2 = st.fixed_dictionaries(
    {
        "at": st.sampled_from([V2, NEG_RISK_V2]),
        "maker": wallets,
        "taker": wallets | st.sampled_from([V2, NEG_RISK_V2]),
        "buys": st.booleans(),
        "token": token_ids,
        "given": amounts,
        "got": amounts,
        "fee": amounts | small,
    }
)
fill_v1 = st.fixed_dictionaries(
    {
        "at": st.sampled_from([V1, NEG_RISK_V1]),
        "maker": wallets,
        "taker": wallets | st.sampled_from([V1, NEG_RISK_V1]),
        "buys": st.booleans(),
        "token": token_ids,
        "given": amounts,
        "got": amounts,
        "fee": amounts | small,
    }
)
matched = st.fixed_dictionaries({"ends": st.sampled_from([V1, V2, NEG_RISK_V1, NEG_RISK_V2])})
operation = st.one_of(
    st.tuples(st.sampled_from(["split", "merge"]), wallets, conditions, small),
    st.tuples(st.just("redeemed"), wallets, conditions, small, st.lists(st.integers(1, 8), max_size=4)),
    st.tuples(st.sampled_from(["adapter_split", "adapter_merge"]), wallets, conditions, small),
    st.tuples(st.just("adapter_redeemed"), wallets, conditions, st.lists(small, max_size=4), small),
    st.tuples(st.just("converted"), wallets, conditions, words, small),
    st.tuples(st.just("transfer"), wallets, wallets, token_ids, small),
    st.tuples(st.just("transfers"), wallets, wallets, st.lists(st.tuples(token_ids, small), max_size=4)),
    st.tuples(st.just("resolved"), conditions, wallets, hashes, st.lists(small, min_size=2, max_size=4)),
    st.tuples(st.just("prepared"), conditions, wallets, hashes, st.integers(2, 256)),
)
step = fill_v1 | fill_v2 | fill_v2 | matched | operation | st.sampled_from(["tx", "block"])


def say_fill(chain, fill, builder=bytes(32)):
    head = (bytes(32), fill["maker"], fill["taker"])
    if fill["at"] in {V1, NEG_RISK_V1}:
        assets = (0, fill["token"]) if fill["buys"] else (fill["token"], 0)
        chain.say(fill["at"], "fill_v1", *head, *assets, fill["given"], fill["got"], fill["fee"])
    else:
        side = 0 if fill["buys"] else 1
        rest = (side, fill["token"], fill["given"], fill["got"], fill["fee"], builder, builder)
        chain.say(fill["at"], "fill_v2", *head, *rest)


def expected_fill(fill):
    """Return the expected fill, computed with exact fractions; None when it must be refused."""
    size, value = (fill["got"], fill["given"]) if fill["buys"] else (fill["given"], fill["got"])
    fee = fill["fee"]
    if fill["at"] in {V1, NEG_RISK_V1} and fill["buys"] and max(size, value, fee) <= MAX_AMOUNT:
        fee = round(Fraction(fee * value, size)) if size else 0
    if max(size, value, fee, fill["fee"]) > MAX_AMOUNT:
        return None
    price = round(Fraction(value * 10**6, size)) if size else 0
    return {
        "contract": INDEX[fill["at"]],
        "token": str(fill["token"]),
        "maker": fill["maker"],
        "taker": fill["taker"],
        "side": 1 if fill["buys"] else -1,
        "size": size,
        "value": value,
        "price": price if price and value <= size else -1,
        "fee_usd": fee,
        "is_taker_order": fill["taker"] == fill["at"],
    }


class Reference:
    """Reference grouping of rows into matches, reading the logs one by one."""

    def __init__(self):
        self.rows, self.open = [], {}

    def fill(self, chain, row):
        row |= {"block_number": chain.number, "log_index": chain.index, "tx_hash": tx_hash(chain.count)}
        row |= {"match_index": -1, "counted": True}
        self.rows.append(row)
        waiting = self.open.setdefault(row["contract"], [])
        if not row["is_taker_order"]:
            waiting.append(row)
            return
        row["match_index"] = row["log_index"]
        for other in waiting:
            if other["tx_hash"] == row["tx_hash"] and other["taker"] == row["maker"]:
                other |= {"match_index": row["log_index"], "counted": False}
        waiting.clear()

    def end(self, contract):
        self.open.pop(contract, None)


def rows(made):
    columns = {name: getattr(made.fills, name).tolist() for name in made.fills.__slots__}
    columns["token"] = [made.tokens[at] for at in columns["token"]]
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def say(chain, told):
    """Have a contract log one of the operations, and return the expected result."""
    kind, *rest = told
    at = (chain.number, chain.index)
    match kind:
        case "split" | "merge":
            holder, of, amount = rest
            chain.say(TOKENS, kind, holder, USDC, bytes(32), of, [1, 2], amount)
            return [(*at, 0, kind, holder, None, of, None, amount, {})]
        case "redeemed":
            holder, of, payout, sets = rest
            chain.say(TOKENS, kind, holder, USDC, bytes(32), of, sets, payout)
            return [(*at, 0, "redeem", holder, None, of, None, payout, {"index_sets": [str(each) for each in sets]})]
        case "adapter_split" | "adapter_merge":
            holder, of, amount = rest
            chain.say(ADAPTER, kind, holder, of, amount)
            return [(*at, 0, kind.removeprefix("adapter_"), holder, None, of, None, amount, {})]
        case "adapter_redeemed":
            holder, of, each, payout = rest
            chain.say(ADAPTER, kind, holder, of, each, payout)
            return [(*at, 0, "redeem", holder, None, of, None, payout, {"amounts": each})]
        case "converted":
            holder, market, index_set, amount = rest
            chain.say(ADAPTER, kind, holder, market, index_set, amount)
            return [(*at, 0, "convert", holder, None, market, None, amount, {"index_set": str(index_set)})]
        case "transfer" | "transfers":
            sender, receiver, *items = rest
            pairs = items[0] if kind == "transfers" else [tuple(items)]
            arguments = ([pair[0] for pair in pairs], [pair[1] for pair in pairs]) if kind == "transfers" else items
            chain.say(TOKENS, kind, sender, sender, receiver, *arguments)
            moved = [pair for pair in pairs if pair[1] and sender != receiver]
            return [
                (*at, 2 * number + side, "transfer", wallet_, other, None, str(token), sign * amount, {})
                for number, (token, amount) in enumerate(moved)
                for side, (wallet_, other, sign) in enumerate([(receiver, sender, 1), (sender, receiver, -1)])
            ]
    return []


@given(st.lists(step, max_size=40), st.randoms(use_true_random=False))
def test_property_what_was_encoded_is_decoded(steps, random):
    chain, reference, ledger, refused, resolved, prepared = Chain(), Reference(), [], 0, [], []
    for each in steps:
        if each in ("tx", "block"):
            getattr(chain, each)()
        elif isinstance(each, tuple):
            ledger += say(chain, each)
            if each[0] == "resolved":
                of, oracle, question, numerators = each[1:]
                place = (chain.number, chain.index)
                chain.say(TOKENS, "resolved", of, oracle, question, len(numerators), numerators)
                if any(numerators):
                    resolved.append((*place, of, oracle, question, tuple(numerators)))
                else:
                    refused += 1
            elif each[0] == "prepared":
                prepared.append((chain.number, chain.index, *each[1:]))
                chain.say(TOKENS, "prepared", *each[1:])
        elif "ends" in each:
            reference.end(INDEX[each["ends"]])
            v1 = each["ends"] in {V1, NEG_RISK_V1}
            chain.say(each["ends"], "matched_v1" if v1 else "matched_v2", bytes(32), wallet(1), 0, 1, 1, 1)
        else:
            row = expected_fill(each)
            if row is None:
                refused += 1
            else:
                reference.fill(chain, row)
            say_fill(chain, each)
    logs = list(chain.logs)
    random.shuffle(logs)

    made = decode(logs, POLYGON)

    assert rows(made) == reference.rows
    assert [
        (*entry[:7], None if entry.token < 0 else made.tokens[entry.token], entry.amount, entry.detail)
        for entry in made.ledger
    ] == ledger
    assert [(*each[:2], *each[4:]) for each in made.resolutions] == resolved
    assert [(*each[:2], *each[4:]) for each in made.preparations] == prepared
    assert made.counts["refused"] == refused
    assert len(set(made.tokens)) == len(made.tokens)


text = st.text(max_size=70) | st.sampled_from(
    ["", "0x", "0x0", "0xzz", "0x" + "f" * 64, "0x" + "0" * 63, "0x" + "é" * 64]
)
FIELDS = ("address", "data", "block_number", "transaction_hash", "log_index", "block_hash", "block_timestamp")
damage = st.one_of(
    st.tuples(st.sampled_from(FIELDS), text),
    st.tuples(st.just("cut"), st.integers(0, 900)),
    st.tuples(st.just("overwritten"), st.tuples(st.integers(0, 900), st.sampled_from("0123456789abcdefxX gé"))),
    st.tuples(st.just("topics"), st.lists(text, max_size=5)),
    st.tuples(st.just("topic"), st.tuples(st.integers(0, 3), text)),
)


def damaged(log, how):
    kind, value = how
    match kind:
        case "cut":
            return msgspec.structs.replace(log, data=log.data[:value])
        case "overwritten":
            at, letter = value
            return msgspec.structs.replace(log, data=log.data[:at] + letter + log.data[at + 1 :])
        case "topic":
            at, told = value
            topics = [told if number == at else topic for number, topic in enumerate(log.topics)]
            return msgspec.structs.replace(log, topics=topics)
    return msgspec.structs.replace(log, **{kind: value})


@given(st.lists(st.tuples(fill_v1 | fill_v2 | operation, damage | st.none()), max_size=20))
def test_property_malformed_logs_never_raise_and_spoil_no_others(steps):
    chain, logs, whole = Chain(), [], []
    for told, how in steps:
        chain.block()
        if isinstance(told, tuple):
            if not say(chain, told):
                continue
        else:
            say_fill(chain, told)
        log = chain.logs[-1]
        if how is None:
            whole.append(log)
        logs.append(log if how is None else damaged(log, how))

    made, clean = decode(logs, POLYGON), decode(whole, POLYGON)

    sound = {(int(log.block_number, 16), int(log.log_index, 16)) for log in whole}
    kept = [row for row in rows(made) if (row["block_number"], row["log_index"]) in sound]
    assert len(made.fills) + len(made.ledger) >= len(clean.fills) + len(clean.ledger)
    assert [{**row, "match_index": 0, "counted": 0} for row in kept if row in rows(clean)] == [
        {**row, "match_index": 0, "counted": 0} for row in rows(clean)
    ]
    assert set(made.counts) == set(COUNTED)
    assert made.counts["refused"] >= len(made.refused)


@given(
    st.lists(
        st.builds(
            RawLog,
            address=st.sampled_from([f"0x{each.address.hex()}" for each in POLYGON]) | text,
            topics=st.lists(text, max_size=5),
            data=text,
            block_number=text,
            transaction_hash=text,
            log_index=text,
            block_hash=text,
            block_timestamp=st.none() | text,
            removed=st.booleans(),
        ),
        max_size=10,
    )
)
def test_property_nonsense_is_refused(logs):
    made = decode(logs, POLYGON)

    assert len(made.fills) == 0
    assert made.counts["refused"] + made.counts["removed"] == len(logs)
