"""Which host runs which feeds: each feed on two hosts, evenly, and decided alike by every host.

A pure function of what the database says. A host that is gone is missing after half a minute, and its feeds are then
run by others; one that is new takes over some, and a former holder ends its run once both new ones could lead.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

RUNS_A_FEED = 2
FRESH_S = 10.0
START_S = 180.0
"""From the start of a process to its first sign of life, on a machine that is busy with starting all the others."""
HUNG_S = 60.0
"""A run without a sign of life for so long, while the database answers, hangs, and may hang with the lead."""
STARTED_AFTER_S = 4.0
"""An assignment is acted upon after so long where nobody runs the feed, as all hosts may have just started, and where
one of its runs is missing."""
TAKEN_AFTER_S = 15.0
"""And after so long where none is, or the database is just back: not every host and run is back at once."""
RETURNING_S = 30.0
"""After an outage of the database, until all hosts and runs are back."""
SETTLED_S = 30.0
"""An assignment that has lasted so long holds: runs that were asked to end before do not count as ready any more."""


class HostedRun(NamedTuple):
    """A run, by the lease that it renews; one that has left renews it no more, and is not ready."""

    run_id: str
    feed: str
    host: str
    ready: bool
    silent_s: float
    has_left: bool = False


class OwnRun(NamedTuple):
    """A run of this host, by its process."""

    run_id: str
    age_s: float


class Changes(NamedTuple):
    """What a host has to do: feeds to start, and runs, by feed, to end."""

    start: list[str]
    stop: dict[str, str]
    """To ask to end: others run these."""
    release: dict[str, str]
    """Not to be started again: runs of another number of shards end by themselves once they are not needed."""
    kill: dict[str, str]


def assigned(feeds: Sequence[str], hosts: Iterable[str]) -> dict[str, list[str]]:
    """Return the hosts of each feed: two different ones, or the only one. No host has two feeds more than another."""
    names = sorted(set(hosts))
    runs = min(RUNS_A_FEED, len(names))
    return {
        feed: [names[(RUNS_A_FEED * nth + place) % len(names)] for place in range(runs)]
        for nth, feed in enumerate(feeds)
    }


def changes(
    host: str,
    running: Mapping[str, OwnRun],
    of_feed: Mapping[str, Sequence[str]],
    runs: Iterable[HostedRun],
    *,
    assigned_s: float,
    answering_s: float,
    was_away: bool,
) -> Changes:
    """Return what this host has to do; it runs `running`, and the hosts of each feed are those of `of_feed`.

    They have been for `assigned_s`, and the database has answered without a break for `answering_s`; it `was_away` if
    there was such a break since this host began to look. That counts for `RETURNING_S`.

    A feed is stopped here only once every other host that is to run it could lead.
    """
    held = list(runs)
    could_lead = {(run.feed, run.host) for run in held if run.ready and run.silent_s < FRESH_S}
    silent_s = {run.run_id: run.silent_s for run in held}
    runs_of = Counter(run.feed for run in held if run.silent_s < FRESH_S and not run.has_left)
    is_just_back = was_away and answering_s < RETURNING_S
    is_missed = {feed for feed in of_feed if runs_of[feed] < (1 if is_just_back else RUNS_A_FEED)}
    return Changes(
        start=[
            feed
            for feed, names in of_feed.items()
            if host in names
            and feed not in running
            and assigned_s >= (STARTED_AFTER_S if feed in is_missed else TAKEN_AFTER_S)
        ],
        stop={
            feed: run.run_id
            for feed, run in running.items()
            if assigned_s >= SETTLED_S
            and feed in of_feed
            and host not in of_feed[feed]
            and all((feed, other) in could_lead for other in of_feed[feed])
        },
        release={feed: run.run_id for feed, run in running.items() if feed not in of_feed},
        kill={
            feed: run.run_id
            for feed, run in running.items()
            if answering_s > HUNG_S
            and (run.age_s > START_S if run.run_id not in silent_s else silent_s[run.run_id] > HUNG_S)
        },
    )
