"""What wallets do is told to those who watch them or ask for them by name, and to nobody else."""

from __future__ import annotations

import time

import pytest

from api.stream.hub import HOLD_S
from tests.api.conftest import generous
from tests.api.listening import seqs, write

RAIN, SNOW = "0x" + "a" * 64, "0x" + "b" * 64
EVERY_TYPE = ("trade", "orderbook", "price", "market", "signal", "onchain_trade")


def wallet(number: int) -> bytes:
    return number.to_bytes(20, "big")


def hexed(address: bytes) -> str:
    return "0x" + address.hex()


def activity(address: bytes, market_id: str = RAIN):
    return ("wallet_activity", market_id, {"address": hexed(address), "role": "maker"}, address)


@pytest.fixture
def watch(server_conn):
    """`watch(email, wallet)` has an account watch a wallet, as POST /v1/wallets/watch does."""

    def watched(email, address):
        server_conn.execute(
            "insert into wallets_watched (account_id, wallet, blocks)"
            " select account_id, %s, '{[0,)}' from accounts where email = %s",
            [address, email],
        )

    return watched


def test_every_type_reaches_who_asks_for_nothing_in_particular(listen, server_conn):
    with listen() as client:
        written = write(server_conn, [(kind, RAIN, {}) for kind in EVERY_TYPE])
        heard = client.events(len(EVERY_TYPE))

    assert seqs(heard) == written
    assert [message["type"] for message in heard] == list(EVERY_TYPE)


def test_each_type_can_be_asked_for_alone(listen, server_conn):
    for number, kind in enumerate(EVERY_TYPE):
        with listen() as client:
            client.say("subscribe", types=[kind])
            client.until("subscribed")
            written = write(server_conn, [(each, RAIN, {}) for each in EVERY_TYPE])
            assert seqs(client.events(1)) == [written[number]]


def test_a_revoked_trade_is_told_like_any_other_event(listen, server_conn):
    with listen() as client:
        client.say("subscribe", types=["onchain_trade"])
        client.until("subscribed")
        write(server_conn, [("onchain_trade", RAIN, {"revoked": False}), ("onchain_trade", RAIN, {"revoked": True})])
        assert [message["data"]["revoked"] for message in client.events(2)] == [False, True]


def test_activity_is_told_to_the_account_that_watches_and_to_no_other(listen, server_conn, watch):
    mine = generous(server_conn, "watcher@example.com")
    other = generous(server_conn, "other@example.com")
    watch("watcher@example.com", wallet(1))
    with listen(key=mine) as watching, listen(key=other) as not_watching:
        written = write(server_conn, [activity(wallet(1)), activity(wallet(2)), ("trade", RAIN, {})])

        assert seqs(watching.events(2)) == [written[0], written[2]]
        assert seqs(not_watching.events(1)) == [written[2]]


def test_a_watched_wallet_is_told_from_the_moment_it_is_watched_until_it_is_not(listen, server_conn, watch):
    key = generous(server_conn, "fickle@example.com")
    with listen(key=key) as client:
        write(server_conn, [activity(wallet(3))])
        watch("fickle@example.com", wallet(3))
        told = write(server_conn, [activity(wallet(3))])
        server_conn.execute("update wallets_watched set unwatched_at = now() where wallet = %s", [wallet(3)])
        write(server_conn, [activity(wallet(3))])
        told += write(server_conn, [("trade", RAIN, {})])

        assert seqs(client.events(2)) == told
    with listen(key=key, resume_from=told[0] - 2) as again:
        heard, _ = again.until("replay_completed")
        assert seqs(heard) == told


def test_a_filter_holds_for_watched_wallets_and_not_for_those_asked_for_by_name(listen, server_conn, watch):
    key = generous(server_conn, "choosy@example.com")
    watch("choosy@example.com", wallet(4))
    with listen(key=key) as client:
        client.say("subscribe_wallet", wallets=[hexed(wallet(5)).upper().replace("0X", "0x")])
        client.until("subscribed")
        client.say("subscribe", markets=[RAIN], types=["trade", "wallet_activity"])
        assert client.until("subscribed")[1] == {
            "type": "subscribed",
            "markets": [RAIN],
            "types": ["trade", "wallet_activity"],
            "wallets": [hexed(wallet(5))],
        }
        events = [activity(wallet(4)), activity(wallet(4), SNOW), activity(wallet(5), SNOW), ("trade", RAIN, {})]
        written = write(server_conn, events)

        assert seqs(client.events(3)) == [written[0], written[2], written[3]]

        client.say("subscribe", types=["price"])
        client.until("subscribed")
        written = write(server_conn, [activity(wallet(4)), activity(wallet(5), SNOW)])
        assert seqs(client.events(1)) == [written[1]]


def test_a_wallet_is_followed_for_whoever_asks_although_nobody_watches_it(listen, server_conn):
    with listen() as client:
        client.say("subscribe_wallet", wallets=[hexed(wallet(6)), hexed(wallet(7))])
        assert client.until("subscribed")[1]["wallets"] == [hexed(wallet(6)), hexed(wallet(7))]
        followed = server_conn.execute(
            "select wallet from wallets_followed where until_at > now() + interval '23 hours' order by wallet"
        ).fetchall()
        assert [row[0] for row in followed if row[0] in (wallet(6), wallet(7))] == [wallet(6), wallet(7)]
        written = write(server_conn, [activity(wallet(6)), activity(wallet(7))])
        assert seqs(client.until("wallet_activity")[0]) == []

        client.say("unsubscribe_wallet", wallets=[hexed(wallet(6))])
        assert client.until("subscribed")[1]["wallets"] == [hexed(wallet(7))]
        written = write(server_conn, [activity(wallet(6)), activity(wallet(7))])
        assert seqs(client.events(1)) == [written[1]]

        client.say("unsubscribe_wallet")
        assert client.until("subscribed")[1]["wallets"] == []
        written = write(server_conn, [activity(wallet(7)), ("trade", RAIN, {})])
        assert seqs(client.events(1)) == [written[1]]


def test_a_replay_tells_of_wallets_as_the_live_stream_does(listen, server_conn):
    with listen() as client:
        last = client.hello["seq"]
    written = write(server_conn, [activity(wallet(8)), ("trade", RAIN, {}), activity(wallet(9)), activity(wallet(8))])
    with listen() as client:
        client.say("subscribe_wallet", wallets=[hexed(wallet(8))])
        client.say("subscribe", types=["wallet_activity"], resume_from=last)
        client.until("subscribed")
        heard, completed = client.until("replay_completed")

    assert seqs(message for message in heard if message["type"] == "wallet_activity") == [written[0], written[3]]
    assert completed["complete"] is True


@pytest.mark.parametrize(
    "wallets",
    [
        None,
        [],
        "0x" + "1" * 40,
        ["0x" + "1" * 39],
        ["0x" + "1" * 41],
        ["1" * 40],
        ["0x" + "g" * 40],
        ["0x" + "1" * 40 + "\n"],
        [7],
        [f"0x{number:040x}" for number in range(1001)],
    ],
    ids=["none", "empty", "no list", "short", "long", "no 0x", "no hex", "newline", "number", "too many"],
)
def test_what_is_no_wallet_is_refused_and_the_connection_stays(listen, wallets):
    with listen() as client:
        client.say("subscribe_wallet", **({} if wallets is None else {"wallets": wallets}))
        assert client.until("error")[1]["code"] == "invalid_parameter"
        client.say("ping")
        assert client.until("pong")[1]["ts"] > 0


def test_the_wallets_of_a_connection_and_of_an_account_are_bounded(listen, server_conn):
    key = generous(server_conn, "curious@example.com")
    thousand = [f"0x{number:040x}" for number in range(1000)]
    with listen(key=key) as client:
        client.say("subscribe_wallet", wallets=thousand)
        assert len(client.until("subscribed")[1]["wallets"]) == 1000
        client.say("subscribe_wallet", wallets=[f"0x{2000:040x}"])
        assert client.until("error")[1]["detail"] == "At most 1000 wallets"
    for more in range(1, 5):
        with listen(key=key) as client:
            client.say("subscribe_wallet", wallets=[f"0x{more * 10_000 + number:040x}" for number in range(1000)])
            client.until("subscribed")
    with listen(key=key) as client:
        client.say("subscribe_wallet", wallets=[f"0x{90_000:040x}"])
        assert "5000 wallets within a day" in client.until("error")[1]["detail"]
        client.say("subscribe_wallet", wallets=thousand[:3])  # followed already
        assert len(client.until("subscribed")[1]["wallets"]) == 3
        # What was followed a day ago makes room.
        server_conn.execute(
            "update wallets_followed set until_at = now() - interval '1 s' where wallet > %s", [wallet(40_000)]
        )
        client.say("subscribe_wallet", wallets=[f"0x{90_000:040x}"])
        assert len(client.until("subscribed")[1]["wallets"]) == 4


def test_a_wallet_wish_does_not_begin_the_stream_before_the_markets_are_named(listen, server_conn):
    for _ in range(100):
        began = time.monotonic()
        with listen() as client:
            client.say("subscribe_wallet", wallets=[hexed(wallet(11))])
            client.until("subscribed")
            write(server_conn, [("trade", SNOW, {})])
            client.say("subscribe", markets=[RAIN])
            before, _ = client.until("subscribed")
            if time.monotonic() - began > HOLD_S:
                continue  # nobody is held for so long: once more
            assert before == []
            time.sleep(HOLD_S)
            written = write(server_conn, [activity(wallet(11), SNOW)])
            assert seqs(client.events(1)) == written
            return
    raise AssertionError("never were three things said in time")
