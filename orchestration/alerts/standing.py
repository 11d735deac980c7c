"""Alert state: what fails and since when, and what is worth an alert. Pure, so tests simulate time in a loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

Severity = Literal["warn", "error"]

# Lateness often ends before anybody has read the alert; and in the first minute after a start all data is missing.
HOLD_S: dict[Severity, float] = {"warn": 120.0, "error": 60.0}
# A check that fails again within this time counts as the same failure.
RECOVERY_S = 300.0


class FailingCheck(msgspec.Struct, frozen=True):
    """A failing check, with the result of its last evaluation."""

    severity: Severity
    said: str


class FailedRun(msgspec.Struct, frozen=True):
    """A failed run."""

    job: str
    run_id: str
    said: str


class Note(msgspec.Struct, frozen=True):
    """One alert to send."""

    key: str
    kind: Literal["problem", "still", "over"]
    severity: Severity
    said: str
    since: float


class CheckState(msgspec.Struct):
    """A check that fails, or failed until a moment ago."""

    since: float
    severity: Severity
    said: str
    told_at: float | None = None
    well_since: float | None = None


class JobState(msgspec.Struct):
    """A job with failed runs."""

    since: float
    told_at: float
    more: int = 0
    said: str = ""


class AlertState(msgspec.Struct):
    """All known failures."""

    checks: dict[str, CheckState] = {}
    jobs: dict[str, JobState] = {}

    def update_checks(
        self, failing: Mapping[str, FailingCheck], unknown: Collection[str], now: float, *, repeat_s: float
    ) -> list[Note]:
        """Update the state from all check results and return new alerts; checks being evaluated are unknown."""
        notes = []
        for key, found in failing.items():
            check = self.checks.setdefault(key, CheckState(now, found.severity, found.said))
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
            elif now - check.well_since >= RECOVERY_S:
                notes.append(Note(key, "over", check.severity, "well again", check.since))
                del self.checks[key]
        return notes

    def add_failed_runs(self, failures: Iterable[FailedRun], now: float, *, repeat_s: float) -> list[Note]:
        """Add newly failed runs: a job's first failure is alerted at once, others are counted."""
        notes = []
        for failure in failures:
            said = f"run {failure.run_id[:8]} failed: {failure.said}"
            if (job := self.jobs.get(failure.job)) is None:
                self.jobs[failure.job] = JobState(now, now)
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
