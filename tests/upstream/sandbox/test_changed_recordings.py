"""Damaged recordings: reading them never ends in a traceback, and never invents data."""

import asyncio
import contextlib
import csv
import gzip
import io
import json
import shutil
from pathlib import Path

import httpx
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.upstream.sandbox.conftest import START_MS
from tests.upstream.sandbox.cuts import Cut, put, simplified, without_hash
from upstream.polymarket.identity import ASSIGNED
from upstream.sandbox.server import Sandbox
from upstream.sandbox.tape import files, kinds
from upstream.sandbox.tape.recording import BookSeen, LevelsChanged, Printed
from upstream.sandbox.tape.tape import Tape, read_tape

HOSTILE = ("", "NaN", "-1", "1e999999999", "9" * 5000, "\0", "\ud800", "0x", "[", "null", "true", " ", "é" * 300)
ODD = (None, True, -1, 0, 2**70, 1e308, [], {}, [[]], {"id": None}, ["x"], *HOSTILE)
CHANGES = ("drop column", "reorder columns", "reorder rows", "repeat rows", "odd value", "drop rows", "rename column")
ENDINGS = ("cut", "cut packed", "odd bytes", "mislabel", "")


@st.composite
def variants(draw, names: tuple[str, ...]) -> tuple[str, list[tuple], tuple]:
    """Draw the changed file, the changes of its rows, and those of its bytes."""
    number = st.integers(0, 10_000)
    rows = draw(
        st.lists(st.tuples(st.sampled_from(CHANGES), number, number, st.sampled_from(range(len(ODD)))), max_size=3)
    )
    return draw(st.sampled_from(names)), rows, (draw(st.sampled_from(ENDINGS)), draw(number), draw(number))


def changed(cut: Cut, changes: list[tuple]) -> None:
    for what, first, second, odd in changes:
        columns, rows = cut.columns, cut.rows
        if not columns or not rows:
            return
        column, row = columns[first % len(columns)], rows[second % len(rows)]
        if what == "drop column":
            columns.remove(column)
        elif what == "reorder columns":
            columns.insert(second % len(columns), columns.pop(first % len(columns)))
        elif what == "rename column":
            other = columns[second % len(columns)]
            for each in rows:
                each[column], each[other] = each.get(other), each.get(column)
        elif what == "reorder rows":
            rows.sort(key=lambda each: hash((first, repr(each))))
        elif what == "repeat rows":
            rows.extend(rows[: second % 5])
        elif what == "drop rows":
            del rows[: second % len(rows)]
        else:
            row[column] = ODD[odd]


def spoiled(data: bytes, how: str, at: int, odd: int) -> bytes:
    if how == "cut":
        return data[: at * len(data) // 10_000]
    if how == "cut packed":
        packed = gzip.compress(data, 1)
        return packed[: at * len(packed) // 10_000]
    if how == "odd bytes" and data[:4] != b"PAR1":
        place = at * len(data) // 10_000
        return data[:place] + (b"\xff\xfe", b"\0", b'"', b"\n", b"{", b"]")[odd % 6] + data[place:]
    return data if odd % 2 else gzip.compress(data, 1)


def atoms(value) -> set:
    """Return every text and number within a value, numbers in micro-units."""
    if isinstance(value, dict):
        return set().union(*map(atoms, value.values()), *map(atoms, value.keys()))
    if isinstance(value, list):
        return set().union(*map(atoms, value)) if value else set()
    if isinstance(value, bool) or value is None:
        return set()
    text = str(value)
    found: set = {text}
    if text[:1] in "[{" and len(text) > 1:
        with contextlib.suppress(ValueError, RecursionError):
            found |= atoms(json.loads(text))
    with contextlib.suppress(ValueError, OverflowError):
        found.add(round(float(text) * 1_000_000))
    return found


def rows_of(data: bytes) -> list[set]:
    """Return the values of each row of a file, read without the tape's own code."""
    if data[:4] == b"PAR1":
        if data[-4:] != b"PAR1" or len(data) < 12:
            return []
        return [atoms(row) for row in pq.read_table(io.BytesIO(data)).to_pylist()]
    text = data.decode("utf-8", "replace")
    if text.lstrip()[:1] in ("[", "{"):
        try:
            whole = json.loads(text)
        except ValueError:
            return [atoms(json.loads(line)) for line in text.splitlines() if is_json(line)]
        if isinstance(whole, dict):
            whole = next((whole[name] for name in ("data", "events", "markets", "trades") if name in whole), [whole])
        return [atoms(row) for row in whole]
    return [atoms(row) for row in csv.reader(io.StringIO(text, newline=""))]


def is_json(line: str) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def check_nothing_is_invented(made: Tape, data: dict[str, bytes]) -> None:
    """Check that each played trade and level is in a row of its file, beside its token."""
    rows = {name: rows_of(content) for name, content in data.items()}
    for recording in made.recordings:
        for one in recording.tape_events:
            if isinstance(one, Printed):
                parts = [{one.token, one.price, one.size} | ({one.wallet} if one.wallet else set())]
                if not one.tx.startswith(ASSIGNED):
                    parts[0].add(one.tx)
            elif isinstance(one, LevelsChanged):
                parts = [{one.token, price, size} for _, price, size in one.changes]
            elif isinstance(one, BookSeen):
                token = set() if recording.file.kind == kinds.QUARTER_BOOKS.name else {one.token}  # assigned there
                parts = [token | {price, size} for side in one.read() for price, size in side]
            else:
                continue
            for part in parts:
                assert any(part <= row for row in rows[recording.name]), (recording.name, part)


def check_every_row_is_accounted_for(made: Tape) -> None:
    for file in made.files:
        assert 0 <= file.used <= file.rows
        assert file.used + sum(file.left_out.values()) == file.rows, file.line()
        assert file.rows or file.why, file.name
        assert all(count > 0 for count in file.left_out.values())


def play_and_look(folder: Path) -> None:
    """Play everything on an exchange, and query all of it."""
    sandbox = Sandbox(tape=folder, speed=0, start_ms=START_MS)
    sandbox.source.advance(START_MS)
    assert sandbox.source.ended
    sandbox.chain.mine()
    transport = httpx.ASGITransport(sandbox.app)
    tokens = list(sandbox.exchange.catalogue.by_token)[:20]

    async def ask() -> None:
        async with httpx.AsyncClient(transport=transport, base_url="http://sandbox") as http:
            for path, query in (
                ("/gamma/markets/keyset", {"limit": 100, "order": "volume24hr", "include_tag": "true"}),
                ("/gamma/events", {"limit": 100, "order": "end_date"}),
                ("/gamma/tags", {}),
                ("/data/v2/trades", {"limit": 1000}),
                ("/data/trades", {"limit": 1000, "takerOnly": "false"}),
                ("/sandbox/status", {}),
                *(("/clob/book", {"token_id": token}) for token in tokens),
            ):
                answer = await http.get(path, params=query)
                assert answer.status_code in (200, 404), answer.text

    asyncio.run(ask())


@pytest.fixture(scope="module")
def read(cuts, tmp_path_factory):
    """Cuts of the recordings, parsed once: a function that returns a fresh one."""
    folder = tmp_path_factory.mktemp("cuts")
    for name, path in cuts.items():
        cut = Cut(path)
        to = folder / name.replace("/", "__").removesuffix(".gz")
        to.write_bytes(cut.written())
    for name, data in (("simplified.json", simplified(cuts)), ("without_hash.csv", without_hash(cuts))):
        (folder / name).write_bytes(data)
    return folder


@pytest.fixture(scope="module")
def names(read) -> tuple[str, ...]:
    return tuple(sorted(path.name for path in read.iterdir()))


def test_property_no_change_of_a_recording_ends_in_a_traceback(read, names, tmp_path_factory):
    base = tmp_path_factory.mktemp("variants")
    contents = {name: (read / name).read_bytes() for name in names}
    context = ("simplified.json", "gamma__markets_20_2024-07.json", "books__btc15m_markets.parquet")
    count = 0

    @given(variants(names))
    def change(variant):
        nonlocal count
        name, changes, ending = variant
        cut = Cut(read / name)
        changed(cut, changes)
        data = spoiled(cut.written(), *ending)
        given_as = names[ending[2] % len(names)] if ending[0] == "mislabel" else name
        folder = base / str(count)
        count += 1
        put(folder, **{each: contents[each] for each in context} | {given_as: data})

        made = read_tape(folder)

        check_every_row_is_accounted_for(made)
        unpacked = {each: files.unpack(folder / each)[0] for each in [*context, given_as]}
        check_nothing_is_invented(made, unpacked)
        play_and_look(folder)
        shutil.rmtree(folder)

    change()
    print(f"{count} variants")
