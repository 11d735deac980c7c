"""Reports a feed's run to Dagster: observations for plots, and periodic materializations for freshness."""

from __future__ import annotations

import logging
from time import monotonic
from typing import TYPE_CHECKING, Any

import dagster as dg

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

log = logging.getLogger(__name__)

OBSERVE_S = 30.0
# After each materialization Dagster shows checks as not yet evaluated: rare enough to show them most of the time.
MATERIALISE_S = 240.0


class Reporter:
    """Reports a feed's figures to Dagster.

    `shown` maps each asset to its figures, empty for all; `standby` is the asset, and its figures, that represents a
    standby run; `run` is what to say of the run itself.
    """

    def __init__(
        self,
        context: dg.AssetExecutionContext,
        shown: Mapping[str, Collection[str]],
        standby: tuple[str, Collection[str]],
        run: Mapping[str, Any] | None = None,
    ) -> None:
        self.led = False
        self._context, self._shown, self._standby = context, shown, standby
        self._run = run or {}
        self._materialised_at = 0.0
        self._role = ""

    def observe(self, figures: dict[str, Any]) -> None:
        """Report the current figures."""
        self.led = self.led or figures["role"] == "leader"
        try:
            self._report(figures)
        except Exception as fault:  # noqa: BLE001 (Dagster's storage may be unavailable: the feed goes on)
            log.warning("observation lost: %s", fault)

    def results(self, totals: dict[str, Any]) -> Iterator[dg.MaterializeResult[None]]:
        """Yield the assets' results; a run that never led has none."""
        if self.led:
            for asset, names in self._shown.items():
                yield dg.MaterializeResult(asset_key=asset, metadata={**self._run, **_figures(totals, names)})

    def _report(self, figures: dict[str, Any]) -> None:
        asset, names = self._standby
        metadata = {**self._run, **_figures(figures, names)}
        if figures["role"] != self._role:
            self._role = figures["role"]
            self._context.log.info("%s", metadata)
        if fault := figures.get("fault"):
            self._context.log.warning("%s", fault)
        if self._role != "leader":
            self._context.log_event(dg.AssetObservation(asset, metadata=metadata))
            return
        due = monotonic() - self._materialised_at >= MATERIALISE_S
        if due:
            self._materialised_at = monotonic()
        event_type = dg.AssetMaterialization if due else dg.AssetObservation
        for asset, names in self._shown.items():
            self._context.log_event(event_type(asset, metadata={**self._run, **_figures(figures, names)}))


def _figures(figures: dict[str, Any], names: Collection[str]) -> dict[str, Any]:
    shown = {name: figures[name] for name in names or figures if figures.get(name) is not None}
    return {"role": figures["role"], **shown}
