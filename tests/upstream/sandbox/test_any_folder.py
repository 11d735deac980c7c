"""Any folder can be a tape: usable content is used, and for the rest the reason is given."""

import csv
import gzip
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.upstream.sandbox.cuts import ROWS, put, simplified, without_hash
from upstream.polymarket.identity import ASSIGNED
from upstream.sandbox.tape import files
from upstream.sandbox.tape import folder as recordings
from upstream.sandbox.tape.folder import UnplayableError
from upstream.sandbox.tape.recording import Printed
from upstream.sandbox.tape.tape import Tape, read_tape

ROOT = Path(__file__).parents[3]


def printed(made: Tape) -> list[Printed]:
    return [one for recording in made.recordings for one in recording.tape_events if isinstance(one, Printed)]


def account(made: Tape, name: str) -> dict:
    return next(file.account() for file in made.files if file.name == name)


# --- The two that crashed ---


def test_simplified_markets_bring_tokens_and_prices_of_markets_that_are_known(cuts, tmp_path):
    rows = json.loads(simplified(cuts))["data"]
    full = json.loads(gzip.decompress(cuts["clob/sampling_markets_1000.json.gz"].read_bytes()))["data"]
    one, other = full[0], full[1]
    gamma = {  # as Gamma describes a market whose book is not open yet: without tokens and prices
        "id": "1",
        "conditionId": one["condition_id"],
        "question": one["question"],
        "slug": one["market_slug"],
        "active": True,
        "closed": False,
    }
    # A market known only by trades, so without a price.
    trade = {
        "timestamp": 1_770_479_519,
        "asset": other["tokens"][0]["token_id"],
        "conditionId": other["condition_id"],
        "side": "BUY",
        "price": 0.5,
        "size": 1,
        "outcome": other["tokens"][0]["outcome"],
        "transactionHash": "0x" + "ab" * 32,
    }
    tokens = [one["token_id"] for one in rows[1]["tokens"]]
    trade_of_the_other = trade | {"asset": tokens[1], "outcome": rows[1]["tokens"][1]["outcome"]}
    folder = put(
        tmp_path / "tape",
        **{
            "simplified-markets.json": simplified(cuts),
            "gamma.json": json.dumps([gamma]).encode(),
            "trades.json": json.dumps([trade, trade_of_the_other]).encode(),
        },
    )

    made = read_tape(folder)

    listed = {listing.gamma["conditionId"]: listing.gamma for listing in made.listings}
    assert listed.keys() == {one["condition_id"], other["condition_id"]}
    for row in rows[:2]:
        market = listed[row["condition_id"]]
        assert json.loads(market["clobTokenIds"]) == [each["token_id"] for each in row["tokens"]]
        assert json.loads(market["outcomes"]) == [each["outcome"] for each in row["tokens"]]
        assert json.loads(market["outcomePrices"]) == [str(each["price"]) for each in row["tokens"]]
    found = account(made, "simplified-markets.json")
    assert (found["rows"], found["used"]) == (ROWS, 2)
    assert found["left_out"] == {"of a market that no file describes": {"rows": ROWS - 2, "first_row": 3}}


def test_prices_that_gamma_recorded_are_not_replaced_by_simplified_ones(cuts, tmp_path):
    row = json.loads(simplified(cuts))["data"][0]
    gamma = {
        "id": "1",
        "conditionId": row["condition_id"],
        "question": "Will it?",
        "slug": "will-it",
        "clobTokenIds": json.dumps([each["token_id"] for each in row["tokens"]]),
        "outcomes": json.dumps([each["outcome"] for each in row["tokens"]]),
        "outcomePrices": '["0.25", "0.75"]',
    }
    folder = put(tmp_path / "tape", a=simplified(cuts), b=json.dumps([gamma]).encode())

    assert read_tape(folder).listings[0].gamma == gamma


def test_trades_without_a_hash_are_played_under_one_that_is_no_real_one(cuts, tmp_path):
    made = read_tape(put(tmp_path / "tape", **{"nobel.csv": without_hash(cuts)}))
    with gzip.open(cuts["trades/data_api_trades_nobel_2025-10.csv.gz"], "rt", newline="") as lines:
        recorded = list(csv.DictReader(lines))[:ROWS]

    trades = printed(made)
    assert sorted((one.token, one.wallet, one.side, one.price, one.size, one.at_ms) for one in trades) == sorted(
        (
            row["asset"],
            row["proxyWallet"],
            row["side"],
            round(float(row["price"]) * 1e6),
            round(float(row["size"]) * 1e6),
            int(row["timestamp"]) * 1000,
        )
        for row in recorded
    )
    assert all(one.tx.startswith(ASSIGNED) and len(one.tx) == 66 for one in trades)
    assert len({one.tx for one in trades}) == len(trades)
    assert account(made, "nobel.csv")["assigned"] == {"transaction hashes": ROWS}
    for listing in made.listings:
        assert "slug" in listing.gamma["sandboxAssigned"]
        assert listing.gamma["question"] in {row["title"] for row in recorded}


def test_an_assigned_hash_depends_on_the_trade_alone(cuts, tmp_path):
    rows = without_hash(cuts, slice(200)).splitlines(keepends=True)
    one = read_tape(put(tmp_path / "one", **{"a.csv": b"".join(rows)}))
    other = read_tape(
        put(
            tmp_path / "other",
            **{
                "b.csv": b"".join([rows[0], *reversed(rows[100:])]),
                "c.csv.gz": gzip.compress(b"".join([rows[0], *rows[1:120]])),
            },
        )
    )

    assert {one.tx for one in printed(one)} == {one.tx for one in printed(other)}
    assert len(printed(one)) == len(printed(other)) == 200
    # 20 rows are in both files; a trade counts once.
    assert account(other, "c.csv.gz")["left_out"]["in another file too"]["rows"] == 20


def test_a_trade_that_another_file_has_with_its_hash_is_told_under_that(cuts, tmp_path):
    with gzip.open(cuts["trades/data_api_trades_nobel_2025-10.csv.gz"]) as lines:
        hashed = b"".join(next(lines) for _ in range(1 + ROWS))
    made = read_tape(put(tmp_path / "tape", **{"a.csv": without_hash(cuts, slice(ROWS + 5)), "b.csv": hashed}))

    assert len(printed(made)) == ROWS + 5
    assert sum(one.tx.startswith(ASSIGNED) for one in printed(made)) == 5
    assert account(made, "a.csv")["left_out"] == {"with its hash in another file": {"rows": ROWS, "first_row": None}}


# --- Reasons ---


def test_each_file_is_used_or_listed_with_the_reason_why_not(cuts, tmp_path):
    rows = without_hash(cuts).decode().splitlines()
    rows[5] = rows[5].replace(rows[5].split(",")[0], "yesterday")
    no_side = "\n".join(",".join(line.split(",")[:5]) for line in rows[:3])
    folder = put(
        tmp_path / "tape",
        **{
            "good.csv": ("\n".join(rows) + "\n").encode(),
            "no_columns.csv": no_side.encode(),
            "cut.csv.gz": gzip.compress(without_hash(cuts, slice(100, 400)))[:4000],
            "half.csv": ("\n".join(rows[:3])[:-8]).encode(),
            "notes.txt": b"remember the milk\n",
            "picture.png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\xff\xfe",
            "empty.csv": b"",
            "broken.json": b'[{"id": 1, ',
            "twice.csv.gz": gzip.compress(("\n".join(rows) + "\n").encode()),
            "broken.parquet": b"PAR1 and nothing more",
        },
    )
    (folder / "hidden").mkdir()
    (folder / "hidden" / "nobel.csv").write_bytes(without_hash(cuts, slice(50, 60)))

    summary = read_tape(folder).account()

    used = {one["file"]: one for one in summary["files"]}
    assert used["good.csv"]["left_out"] == {"malformed time": {"rows": 1, "first_row": 5}}
    assert used["cut.csv.gz"]["why"].startswith("cut off where")
    assert used["cut.csv.gz"]["left_out"]["cut off: the row has no end"]["rows"] == 1
    assert used["half.csv"]["left_out"]["cut off: the row has no end"] == {"rows": 1, "first_row": 2}
    assert used["hidden/nobel.csv"]["used"] == 10
    reasons = {
        "no_columns.csv": "unknown kind: columns timestamp, title, name, size, price",
        "notes.txt": "unknown kind: columns remember the milk",
        "picture.png": "unknown kind: neither text nor gzip nor Parquet",
        "empty.csv": "empty",
        "broken.json": "not JSON: ",
        "twice.csv.gz": "the same as good.csv",
        "broken.parquet": "not Parquet: ",
    }
    assert summary["unread"].keys() == reasons.keys()
    for name, reason in reasons.items():
        assert summary["unread"][name].startswith(reason)


def test_a_missing_column_is_named(cuts, tmp_path):
    rows = list(csv.reader(io.StringIO(without_hash(cuts).decode())))
    at = rows[0].index("price")
    lacking = "".join(",".join(f'"{cell}"' for cell in row[:at] + row[at + 1 :]) + "\n" for row in rows)
    folder = put(tmp_path / "tape", **{"a.csv": lacking.encode(), "b.csv": without_hash(cuts, slice(20, 30))})

    assert read_tape(folder).account()["unread"] == {"a.csv": "looks like Data API trades, but has no column price"}


def test_hostile_sizes_are_refused(cuts, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MAX_FILE_BYTES", 1 << 20)
    monkeypatch.setattr(files, "MAX_ROW_CHARACTERS", 10_000)
    monkeypatch.setattr(files, "MAX_ROWS", 20)
    good = without_hash(cuts)
    head = good.splitlines(keepends=True)[0]
    quoted = b'"' + b"x" * 9_000 + b'"'
    folder = put(
        tmp_path / "tape",
        **{
            "bomb.csv.gz": gzip.compress(head + b"\0" * (50 << 20)),
            "large.json": b"[" + b" " * (2 << 20) + b"]",
            "long.csv": good + b"x" * 20_000 + b"\n" + without_hash(cuts, slice(100, 110)),
            "long_cell.csv": good + quoted * 1 + b"\n" + b'"' + b"y\n" * 140_000,
            "many.csv": without_hash(cuts, slice(1000, 1100)),
            "deep.json": b"[" * 100_000,
            "deep_object.json": b'[{"id": "1", "conditionId": "", "question": ' + b"[" * 400 + b"]" * 400 + b"}]",
            "huge_numbers.csv": good.replace(b"0.9", b"1e999999999"),
        },
    )

    made = read_tape(folder)
    summary = made.account()

    assert summary["unread"]["bomb.csv.gz"] == "unpacks to more than 1 MB"
    assert summary["unread"]["large.json"] == "larger than 1 MB"
    assert summary["unread"]["deep.json"] == "not read: too many lists within each other"
    accounts = {one["file"]: one for one in summary["files"]}
    assert accounts["long.csv"]["why"] == (
        f"row {ROWS + 1} is longer than 10,000 characters; it and what follows are left out"
    )
    assert accounts["many.csv"]["why"] == "more than 20 rows; what follows is left out"
    assert accounts["many.csv"]["used"] == 20
    assert "more than 32 lists within each other" in next(iter(accounts["deep_object.json"]["left_out"]))
    assert accounts["huge_numbers.csv"]["left_out"]["malformed price"]["rows"] > 0
    assert accounts["long_cell.csv"]["rows"] > ROWS


def test_too_many_files_are_no_tape(tmp_path, monkeypatch):
    monkeypatch.setattr(recordings, "MAX_FILES", 3)
    folder = put(tmp_path / "tape", **{f"{at}.csv": b"" for at in range(4)})

    with pytest.raises(UnplayableError, match="more than 3 files"):
        read_tape(folder)


def test_folders_that_contain_each_other_are_read_once(cuts, tmp_path):
    folder = put(tmp_path / "tape", **{"a.csv": without_hash(cuts)})
    (folder / "again").symlink_to(folder)

    assert [file.name for file in read_tape(folder).files] == ["a.csv"]


@pytest.mark.parametrize("module", ["upstream.sandbox", "upstream.sandbox.tape.tape"])
def test_a_folder_with_nothing_to_play_is_told_without_a_traceback(module, tmp_path):
    folder = put(tmp_path / "tape", **{"notes.txt": b"remember the milk\n"})
    arguments = ["--port", "0", "--tape"] if module == "upstream.sandbox" else []
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments, str(folder)], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert done.returncode == 1
    assert "no recordings in" in done.stderr
    assert "not read: notes.txt: unknown kind: columns remember the milk" in done.stderr
    assert "Traceback" not in done.stderr
