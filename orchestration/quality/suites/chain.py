"""Suites for on-chain settlements and the wallets' positions."""

from __future__ import annotations

from orchestration.quality.expecting import (
    Check,
    Suite,
    amount,
    between,
    holds,
    no_rows,
    not_ahead,
    of_block,
    of_length,
    of_token,
    one_of,
    price,
    unique,
)

STAGE = "settlement"
AT_ONCE = 5_000
MOST = 2**63 - 1

_KINDS = ("split", "merge", "convert", "redeem", "transfer")


def _fill() -> tuple[Check, ...]:
    return (
        between("size", 0, MOST),
        price("price"),
        one_of("side", 1, -1),
        between("value_usd", 0, MOST),
        between("fee_usd", 0, MOST),
        holds(
            "worth",
            "`price` is the cost of a share, rounded; null if there is none.",
            "price is null or abs(price::numeric * size - value_usd::numeric * 1000000) <= size / 2.0",
        ),
        of_block(),
        of_token(),
    )


def _ranges(table: str, when: str) -> tuple[Check, ...]:
    touching = f"select from {table} r where r.from_block < fresh.from_block and r.to_block >= fresh.from_block - 1"
    return (
        holds(
            "apart",
            "No range overlaps or touches one below it: adjacent ranges are merged.",
            f"not exists ({touching})",
            severity="warn",
        ),
        not_ahead(when, severity="warn"),
    )


CHAIN = (
    Suite(
        "chain_ranges",
        STAGE,
        "chain_ranges",
        (*_ranges("chain_ranges", "indexed_at"), between("logs", 0, MOST, severity="warn")),
        by="whole",
    ),
    Suite("chain_checks", STAGE, "chain_ranges", _ranges("chain_checks", "checked_at"), by="whole"),
    Suite(
        "chain_blocks",
        STAGE,
        "chain_blocks",
        (
            of_length("hash", 32),
            holds(
                "linked",
                "A block's parent is the block before it.",
                """
                parent is null
                or not exists (select from chain_blocks p where p.number = fresh.number - 1 and p.hash <> fresh.parent)
                """,
            ),
            holds(
                "later",
                "A block is not older than the one before it.",
                "not exists (select from chain_blocks p where p.number = fresh.number - 1 and p.ts > fresh.ts)",
            ),
            holds(
                "indexed",
                "A block is within an indexed range.",
                "exists (select from chain_ranges r where fresh.number between r.from_block and r.to_block)",
            ),
            holds(
                "whole",
                "A block has no more fills than it had logs.",
                """
                logs >= 0 and logs >= (
                    select count(*) from settlements s where s.block_number = fresh.number and s.ts = fresh.ts
                )
                """,
            ),
            not_ahead(),
        ),
        by="blocks",
        most=AT_ONCE,
    ),
    Suite(
        "settlements",
        STAGE,
        "settlements",
        (
            *_fill(),
            of_length("tx_hash", 32),
            of_length("maker", 20),
            of_length("taker", 20),
            holds(
                "contract",
                "The contract is known.",
                "exists (select from chain_contracts c where c.contract_key = fresh.contract_key)",
            ),
            holds(
                "counted",
                "The taker's row of a match is counted, and rows without one are.",
                "counted = (is_taker_order or match_index is null)",
            ),
            no_rows("match", "A match has its taker's row.", "matches_without_taker"),
            no_rows("history", "Each fill is in its maker's history with the same values.", "fills_without_history"),
        ),
        by="of_blocks",
    ),
    Suite(
        "wallet_fills",
        STAGE,
        "wallet_fills",
        (
            *_fill(),
            of_length("wallet", 20),
            no_rows(
                "settlement",
                "Each fill belongs to a settlement that the wallet takes part in.",
                "histories_without_fill",
            ),
        ),
        by="of_blocks",
    ),
    Suite(
        "ledger_entries",
        STAGE,
        "ledger_entries",
        (
            one_of("kind", *_KINDS, "resolution"),
            holds("amount", "Only a transfer has an amount below 0.", "amount >= 0 or kind = 'transfer'"),
            holds(
                "subject",
                "A transfer has a token and a counterparty; any other entry a condition of 32 bytes.",
                """
                case kind
                    when 'transfer' then num_nulls(token_key, counterparty) = 0
                    else condition_id is not null and octet_length(condition_id) = 32
                end
                """,
            ),
            of_length("wallet", 20),
            of_length("tx_hash", 32),
            holds(
                "payout",
                "A resolution has each outcome's payout.",
                "kind <> 'resolution' or jsonb_array_length(detail -> 'numerators') > 0",
            ),
            of_block(),
            of_token(),
        ),
        by="of_blocks",
    ),
    Suite(
        "position_changes",
        STAGE,
        "ledger_entries",
        (
            one_of("kind", *_KINDS),
            holds("shares", "A change is not zero.", "shares <> 0"),
            of_length("wallet", 20),
            of_block(),
            of_token(),
            no_rows("entry", "Each change belongs to a ledger entry.", "changes_without_entry"),
        ),
        by="of_blocks",
    ),
    Suite(
        "wallet_activity",
        STAGE,
        "wallet_fills",
        (
            *_fill(),
            holds(
                "watched",
                "The wallet has been watched.",
                "exists (select from wallets_watched w where w.wallet = fresh.wallet)",
            ),
        ),
        by="of_blocks",
    ),
    Suite(
        "wallet_positions",
        STAGE,
        "wallet_positions",
        (
            amount("buys"),
            between("bought", 0, MOST),
            between("bought_usd", 0, MOST),
            amount("sells"),
            between("sold", 0, MOST),
            between("sold_usd", 0, MOST),
            holds(
                "covered",
                "Shares of known cost do not exceed those held, unless some came from an unknown source.",
                "covered >= 0 and (left_out > 0 or covered <= greatest(held, 0))",
            ),
            holds("cost", "The cost of shares held is not negative.", "cost_usd >= 0"),
            holds(
                "times", "The last trade is not before the first.", "first_trade is null or first_trade <= last_trade"
            ),
            of_token(),
        ),
        by="whole",
    ),
    Suite(
        "leaderboards",
        STAGE,
        "leaderboards",
        (
            one_of("span", "1d", "7d", "30d", "all"),
            one_of("by", "volume", "pnl", "window_pnl"),
            of_length("wallet", 20),
            between("volume_usd", 0, MOST),
            unique("once", "span", "by", "wallet"),
            no_rows("ranked", "Ranks are consecutive, and in descending order of value.", "boards_out_of_order"),
        ),
        by="whole",
    ),
)
