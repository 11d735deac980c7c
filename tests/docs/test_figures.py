"""Figures in the documentation are those of the code: each has one source, and every place that repeats it is read."""

import json
import re
from pathlib import Path

import pytest

from config import tunables as parameters
from config.settings import Settings

DOCS = Path(__file__).parents[2] / "docs"
API = (DOCS / "api.md").read_text()


def table(text, heading):
    """The rows of the table whose head begins with these cells."""
    lines = text[text.index("| " + " | ".join(heading) + " |") :].splitlines()
    rows = []
    for line in lines[2:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def number(cell):
    """The figure at the beginning of a cell; None where it is without limit, or by agreement."""
    found = re.match(r"[\d,]+", cell)
    return int(found[0].replace(",", "")) if found else None


def test_the_table_of_tiers_is_that_of_the_database(conn):
    told = {row[0].split()[0]: [number(cell) for cell in row[1:]] for row in table(API, ["tier", "a month"])}

    stored = conn.execute(
        """select tier, credits_month, credits_burst, max_keys, max_webhooks, webhook_messages_day, max_connections
        from tiers"""
    ).fetchall()

    assert told == {tier: limits for tier, *limits in stored}


def test_the_threshold_of_whales_is_the_parameters_everywhere():
    default = parameters.TUNABLES["whale_alert_usd"].default
    stream = (DOCS / "stream.md").read_text()
    (event,) = [json.loads(line) for line in stream.splitlines() if line.startswith('{"type":"signal"')]

    assert event["data"]["threshold"] == default
    assert event["data"]["value"] >= default
    said = re.findall(r"`whale_alert_usd` or more \(([\d,]+) unless changed\)", API)
    said += re.findall(r"\| `whale_alert_usd` \| ([\d,]+) \|", (DOCS / "signals.md").read_text())
    assert [number(each) for each in said] == [default, default]


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_how_long_data_is_kept_is_what_the_settings_say(page):
    told = re.findall(r"`PRESAGE_(\w+_RETENTION_(?:DAYS|H))`[^|`\n]{0,40}?(\d+) (?:days|hours|h)\b", page.read_text())

    assert {name: int(figure) for name, figure in told} == {
        name: Settings.model_fields[name.lower()].default for name, _ in told
    }


def test_books_of_the_past_are_described_once():
    assert API.count("/orderbook?at=") == 1
    assert [line for line in API.splitlines() if line.startswith("#") and "past" in line.lower()] == [
        "## Books of the past"
    ]
