"""What is wrong for how long, and what of it is worth telling: pure, so that an hour of trouble is a loop in a test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

Severity = Literal["warn", "error"]

# What is merely late often is well again before anybody has read of it; and in a first minute all is missing.
HOLD_S: dict[Severity, float] = {"warn": 120.0, "error": 60.0}
# What comes back within this time had never gone.
OVER_S = 300.0


class Failing(msgspec.Struct, frozen=True):
    """A check that does not hold, as it was judged last."""

    severity: Severity
    said: str


class Failure(msgspec.Struct, frozen=True):
    """A run that failed."""

    job: str
    run_id: str
    said: str


class Note(msgspec.Struct, frozen=True):
    """One thing to tell."""

    key: str
    kind: Literal["problem", "still", "over"]
    severity: Severity
    said: str
    since: float


class Check(msgspec.Struct):
    """A check that fails, or did until a moment ago."""

    since: float
    severity: Severity
    said: str
    told_at: float | None = None
    well_since: float | None = None


class Job(msgspec.Struct):
    """A job whose runs fail."""

    since: float
    told_at: float
    more: int = 0
    said: str = ""


class Standing(msgspec.Struct):
    """What is known to be wrong."""

    checks: dict[str, Check] = {}
    jobs: dict[str, Job] = {}

    def judged(
        self, failing: Mapping[str, Failing], unknown: Collection[str], now: float, *, repeat_s: float
    ) -> list[Note]:
        """Take in what every check says now; those under way say nothing yet. Give what is worth telling."""
        notes = []
        for key, found in failing.items():
            check = self.checks.setdefault(key, Check(now, found.severity, found.said))
            worse = check.severity == "warn" and found.severity == "error"
            check.well_since, check.severity, check.said = None, found.severity, found.said
            if check.told_at is None:
                kind: Literal["problem", "still"] = "problem"
                due = now - check.since >= HOLD_S[check.severity]
            else:
                kind = "problem" if worse else "still"
                due = worse or now - check.told_at >= repeat_s
            if due:
                check.told_at = now
                notes.append(Note(key, kind, check.severity, check.said, check.since))
        for key in [key for key in self.checks if key not in failing and key not in unknown]:
            check = self.checks[key]
            if check.told_at is None:
                del self.checks[key]
            elif check.well_since is None:
                check.well_since = now
            elif now - check.well_since >= OVER_S:
                notes.append(Note(key, "over", check.severity, "well again", check.since))
                del self.checks[key]
        return notes

    def failed(self, failures: Iterable[Failure], now: float, *, repeat_s: float) -> list[Note]:
        """Take in runs that failed since the last look: a job's first is told at once, others counted."""
        notes = []
        for failure in failures:
            said = f"run {failure.run_id[:8]} failed: {failure.said}"
            if (job := self.jobs.get(failure.job)) is None:
                self.jobs[failure.job] = Job(now, now)
                notes.append(Note(f"job {failure.job}", "problem", "error", said, now))
            else:
                job.more, job.said = job.more + 1, said
        for name, job in list(self.jobs.items()):
            if now - job.told_at < repeat_s:
                continue
            if not job.more:
                del self.jobs[name]
                continue
            runs = "1 more run" if job.more == 1 else f"{job.more} more runs"
            notes.append(Note(f"job {name}", "still", "error", f"{runs} failed; the last: {job.said}", job.since))
            job.told_at, job.more = now, 0
        return notes
