"""The ledger: position changes other than fills, and their attribution to wallets."""

from __future__ import annotations

import pytest

from tests.upstream.chain.encoded import (
    ADAPTER,
    BURN,
    CTF_COLLATERAL,
    FEE_MODULE,
    NEG_RISK_COLLATERAL,
    NEG_RISK_V1,
    NEG_RISK_V2,
    NO_HASH,
    TOKENS,
    USDC,
    V1,
    V2,
    ZERO,
    Chain,
    condition,
    token,
    wallet,
)
from upstream.chain.contracts import POLYGON, Kind
from upstream.chain.decode import decode

YES, NO = token(1), token(2)
USER, OTHER = wallet(1), wallet(2)
AMOUNT = 3_000_000


class Movements(Chain):
    """Logs of contract calls, in the contracts' order."""

    def moved(self, sender, receiver, tokens, *, by=None):
        if len(tokens) == 1:
            ((each, amount),) = tokens.items()
            return self.say(TOKENS, "transfer", by or sender, sender, receiver, each, amount)
        return self.say(TOKENS, "transfers", by or sender, sender, receiver, list(tokens), list(tokens.values()))

    def split(self, holder, amount=AMOUNT, *, pair=(YES, NO), collateral=USDC):
        """Conditional Tokens' splitPosition."""
        self.moved(ZERO, holder, dict.fromkeys(pair, amount), by=holder)
        self.say(TOKENS, "split", holder, collateral, NO_HASH, condition(1), [1, 2], amount)

    def merge(self, holder, amount=AMOUNT, *, pair=(YES, NO)):
        self.moved(holder, ZERO, dict.fromkeys(pair, amount))
        self.say(TOKENS, "merge", holder, USDC, NO_HASH, condition(1), [1, 2], amount)

    def redeem(self, holder, burnt, payout):
        for each, amount in burnt.items():
            self.moved(holder, ZERO, {each: amount})
        self.say(TOKENS, "redeemed", holder, USDC, NO_HASH, condition(1), [1, 2], payout)

    def adapter_split(self, holder, amount=AMOUNT):
        self.split(ADAPTER, amount)
        self.moved(ADAPTER, holder, {YES: amount, NO: amount})
        self.say(ADAPTER, "adapter_split", holder, condition(1), amount)

    def adapter_merge(self, holder, amount=AMOUNT):
        self.moved(holder, ADAPTER, {YES: amount, NO: amount}, by=ADAPTER)
        self.merge(ADAPTER, amount)
        self.say(ADAPTER, "adapter_merge", holder, condition(1), amount)

    def adapter_redeem(self, holder, yes, no, payout):
        self.moved(holder, ADAPTER, {YES: yes, NO: no}, by=ADAPTER)
        self.redeem(ADAPTER, {each: amount for each, amount in ((YES, yes), (NO, no)) if amount}, payout)
        self.say(ADAPTER, "adapter_redeemed", holder, condition(1), [yes, no], payout)

    def convert(self, holder, amount=AMOUNT, *, given=(11, 12), got=(23,), out=None):
        """The NO tokens `given` of questions 0, 1, … become the YES tokens `got` of the others."""
        for number in got:
            self.split(ADAPTER, amount, pair=(token(number), token(number + 10)))
        self.moved(holder, BURN, {token(number): amount for number in given}, by=ADAPTER)
        self.moved(ADAPTER, BURN, {token(number + 10): amount for number in got})
        self.moved(ADAPTER, holder, {token(number): amount if out is None else out for number in got})
        self.say(ADAPTER, "converted", holder, condition(9), 2 ** len(given) - 1, amount)


@pytest.fixture
def chain():
    return Movements()


def ledger(chain, contracts=POLYGON):
    made = decode(chain.logs, contracts)
    assert not made.refused
    return made


def changes(made):
    """Return by wallet and token what it gained according to the entries."""
    total = {}
    for entry in made.ledger:
        if entry.kind == "transfer":
            moved = [(made.tokens[entry.token], entry.amount)]
        else:
            moved = entry.detail.get("tokens", [])
        for name, amount in moved:
            if entry.wallet is not None:
                total[entry.wallet, int(name)] = total.get((entry.wallet, int(name)), 0) + amount
    return {key: amount for key, amount in total.items() if amount}


def told(made):
    return [(entry.kind, entry.wallet, entry.amount, entry.detail.get("through")) for entry in made.ledger]


def test_what_a_wallet_does_in_its_own_name_is_its_own(chain):
    chain.split(USER)
    chain.tx()
    chain.merge(USER, 1_000_000)
    chain.tx()
    chain.redeem(USER, {YES: 2_000_000, NO: 2_000_000}, 2_000_000)

    made = ledger(chain)

    assert told(made) == [
        ("split", USER, AMOUNT, None),
        ("merge", USER, 1_000_000, None),
        ("redeem", USER, 2_000_000, None),
    ]
    assert made.ledger[0].detail["tokens"] == [[str(YES), AMOUNT], [str(NO), AMOUNT]]
    assert made.ledger[0].condition_id == condition(1)
    assert changes(made) == {}


def test_events_alone_are_enough_for_an_entry(chain):
    chain.say(TOKENS, "split", USER, USDC, NO_HASH, condition(1), [1, 2], AMOUNT)
    chain.say(ADAPTER, "converted", USER, condition(9), 0b101, AMOUNT)

    made = ledger(chain)

    assert told(made) == [("split", USER, AMOUNT, None), ("convert", USER, AMOUNT, None)]
    assert [entry.detail for entry in made.ledger] == [{}, {"index_set": "5"}]


def test_the_neg_risk_adapter_s_own_event_tells_whose_it_was(chain):
    chain.adapter_split(USER)
    chain.tx()
    chain.adapter_merge(USER, 1_000_000)
    chain.tx()
    chain.adapter_redeem(USER, 2_000_000, 0, 2_000_000)

    made = ledger(chain)

    assert told(made) == [
        ("split", USER, AMOUNT, None),
        ("merge", USER, 1_000_000, None),
        ("redeem", USER, 2_000_000, None),
    ]
    assert all(POLYGON[entry.contract].kind is Kind.NEG_RISK_ADAPTER for entry in made.ledger)
    assert changes(made) == {(USER, NO): 2_000_000}
    assert made.counts["inner_steps"] == 3


def test_a_conversion_names_what_went_and_what_came(chain):
    chain.convert(USER, out=AMOUNT - 1000)

    (entry,) = ledger(chain).ledger

    assert (entry.kind, entry.wallet, entry.condition_id, entry.amount) == ("convert", USER, condition(9), AMOUNT)
    assert entry.detail == {
        "index_set": "3",
        "tokens": [[str(token(11)), -AMOUNT], [str(token(12)), -AMOUNT], [str(token(23)), AMOUNT - 1000]],
    }


def test_what_a_collateral_adapter_does_is_its_user_s(chain):
    chain.split(CTF_COLLATERAL)
    chain.moved(CTF_COLLATERAL, USER, {YES: AMOUNT, NO: AMOUNT})
    chain.tx()
    chain.moved(USER, CTF_COLLATERAL, {YES: 1_000_000, NO: 1_000_000}, by=CTF_COLLATERAL)
    chain.merge(CTF_COLLATERAL, 1_000_000)
    chain.tx()
    chain.moved(USER, CTF_COLLATERAL, {YES: 2_000_000, NO: 2_000_000}, by=CTF_COLLATERAL)
    chain.redeem(CTF_COLLATERAL, {YES: 2_000_000, NO: 2_000_000}, 2_000_000)

    made = ledger(chain)

    through = f"0x{CTF_COLLATERAL.hex()}"
    assert told(made) == [
        ("split", USER, AMOUNT, through),
        ("merge", USER, 1_000_000, through),
        ("redeem", USER, 2_000_000, through),
    ]
    assert changes(made) == {}


def test_so_it_is_through_two_adapters(chain):
    chain.adapter_split(NEG_RISK_COLLATERAL)
    chain.moved(NEG_RISK_COLLATERAL, USER, {YES: AMOUNT, NO: AMOUNT})
    chain.tx()
    chain.moved(USER, NEG_RISK_COLLATERAL, {YES: 5, NO: 0}, by=NEG_RISK_COLLATERAL)
    chain.adapter_redeem(NEG_RISK_COLLATERAL, 5, 0, 5)
    chain.tx()
    chain.moved(USER, NEG_RISK_COLLATERAL, {token(11): 7, token(12): 7}, by=NEG_RISK_COLLATERAL)
    chain.convert(NEG_RISK_COLLATERAL, 7)
    chain.moved(NEG_RISK_COLLATERAL, USER, {token(23): 7})

    made = ledger(chain)

    through = f"0x{NEG_RISK_COLLATERAL.hex()}"
    assert told(made) == [("split", USER, AMOUNT, through), ("redeem", USER, 5, through), ("convert", USER, 7, through)]
    assert changes(made) == {
        (USER, YES): AMOUNT - 5,
        (USER, NO): AMOUNT,
        (USER, token(11)): -7,
        (USER, token(12)): -7,
        (USER, token(23)): 7,
    }
    assert made.counts["unattributed"] == 0


def test_users_of_one_transaction_are_told_apart_by_what_they_were_handed(chain):
    for user, amount in ((USER, 5), (OTHER, 8), (USER, 8)):
        chain.split(CTF_COLLATERAL, amount)
        chain.moved(CTF_COLLATERAL, user, {YES: amount, NO: amount})
    chain.moved(OTHER, CTF_COLLATERAL, {YES: 3, NO: 3}, by=CTF_COLLATERAL)
    chain.merge(CTF_COLLATERAL, 3)

    made = ledger(chain)

    assert [(entry.kind, entry.wallet, entry.amount) for entry in made.ledger] == [
        ("split", USER, 5),
        ("split", OTHER, 8),
        ("split", USER, 8),
        ("merge", OTHER, 3),
    ]


def test_nothing_is_guessed_where_no_transfer_shows_whose_it_was(chain):
    chain.split(CTF_COLLATERAL, 5)
    chain.moved(CTF_COLLATERAL, USER, {YES: 4, NO: 4})  # not these tokens
    chain.tx()
    chain.say(TOKENS, "redeemed", CTF_COLLATERAL, USDC, NO_HASH, condition(1), [1, 2], 9)

    made = ledger(chain)

    assert [(entry.kind, entry.wallet) for entry in made.ledger if entry.kind != "transfer"] == [
        ("split", None),
        ("redeem", None),
    ]
    assert made.counts["unattributed"] == 2
    # The user's balance is still right: the tokens came by transfer.
    assert changes(made) == {(USER, YES): 4, (USER, NO): 4}
    assert {entry.counterparty for entry in made.ledger if entry.kind == "transfer"} == {CTF_COLLATERAL}


@pytest.mark.parametrize(
    ("exchange", "through"),
    [(V2, CTF_COLLATERAL), (NEG_RISK_V2, NEG_RISK_COLLATERAL)],
    ids=["standard", "neg-risk"],
)
def test_what_the_exchange_mints_and_merges_for_a_match_is_trading(chain, exchange, through):
    for sell in (False, True):
        if sell:
            chain.moved(USER, exchange, {YES: AMOUNT}, by=exchange)
            chain.moved(exchange, through, {YES: AMOUNT, NO: AMOUNT}, by=through)
            (chain.merge if exchange == V2 else chain.adapter_merge)(through)
        else:
            (chain.split if exchange == V2 else chain.adapter_split)(through)
            chain.moved(through, exchange, {YES: AMOUNT, NO: AMOUNT}, by=through)
            chain.moved(exchange, USER, {YES: AMOUNT}, by=exchange)
        chain.tx()

    made = ledger(chain)

    assert made.ledger == []
    assert made.counts["inner_steps"] == (2 if exchange == V2 else 4)
    assert made.counts["unattributed"] == 0


@pytest.mark.parametrize(("exchange", "holder"), [(V1, V1), (NEG_RISK_V1, ADAPTER)], ids=["standard", "neg-risk"])
def test_so_it_is_in_v1(chain, exchange, holder):
    if holder == V1:
        chain.split(V1)
    else:
        chain.adapter_split(NEG_RISK_V1)
    operator = ADAPTER if exchange == NEG_RISK_V1 else V1
    chain.moved(exchange, USER, {YES: AMOUNT}, by=operator)
    chain.moved(OTHER, exchange, {NO: AMOUNT}, by=operator)

    assert ledger(chain).ledger == []


def test_direct_transfers_of_a_match_are_trading(chain):
    chain.moved(USER, OTHER, {YES: AMOUNT}, by=V2)

    made = ledger(chain)

    assert made.ledger == []
    assert made.counts["trading_transfers"] == 1


def test_a_transfer_between_wallets_is_an_entry_for_each(chain):
    chain.moved(USER, OTHER, {YES: 5})
    chain.moved(USER, OTHER, {YES: 1, NO: 0, token(3): 2}, by=wallet(7))
    chain.moved(USER, USER, {YES: 9})

    made = ledger(chain)

    assert [
        (entry.log_index, entry.entry, entry.wallet, entry.counterparty, made.tokens[entry.token], entry.amount)
        for entry in made.ledger
    ] == [
        (0, 0, OTHER, USER, str(YES), 5),
        (0, 1, USER, OTHER, str(YES), -5),
        (1, 0, OTHER, USER, str(YES), 1),
        (1, 1, USER, OTHER, str(YES), -1),
        (1, 2, OTHER, USER, str(token(3)), 2),
        (1, 3, USER, OTHER, str(token(3)), -2),
    ]


def test_fees_given_back_in_shares_are_counted_and_no_gift(chain):
    chain.moved(FEE_MODULE, USER, {YES: 5})

    made = ledger(chain)

    assert (made.ledger, made.counts["fee_refunds"]) == ([], 1)


def test_positions_in_a_token_of_someone_s_own_are_not_the_exchange_s(chain):
    chain.split(USER, 10**15, collateral=wallet(66))

    made = ledger(chain)

    assert (made.ledger, made.counts["foreign_collateral"]) == ([], 1)


def test_contracts_that_name_no_collateral_take_any(chain):
    chain.split(USER, 5, collateral=wallet(66))

    made = ledger(chain, tuple(each for each in POLYGON if each.kind is not Kind.COLLATERAL))

    assert told(made) == [("split", USER, 5, None)]


def test_what_is_no_full_set_is_refused_and_the_tokens_seen_to_move(chain):
    chain.moved(ZERO, USER, {YES: 5, NO: 5}, by=USER)
    chain.say(TOKENS, "split", USER, USDC, NO_HASH, condition(1), [1, 6], 5)
    chain.say(TOKENS, "merge", USER, USDC, condition(8), condition(1), [1, 2], 5)
    chain.say(TOKENS, "resolved", condition(1), USER, NO_HASH, 2, [0, 0])
    chain.say(TOKENS, "resolved", condition(1), USER, NO_HASH, 3, [1, 0])

    made = decode(chain.logs, POLYGON)

    assert made.counts["refused"] == 4
    assert changes(made) == {(USER, YES): 5, (USER, NO): 5}
    assert made.resolutions == []


def test_resolutions_carry_their_numerators(chain):
    chain.say(TOKENS, "resolved", condition(1), OTHER, condition(5), 2, [1, 1])

    (resolved,) = ledger(chain).resolutions

    assert (resolved.condition_id, resolved.oracle, resolved.question_id, resolved.numerators) == (
        *(condition(1), OTHER, condition(5)),
        (1, 1),
    )
