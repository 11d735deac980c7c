"""How a feed's run shows in Dagster: observations for the plots, now and then a materialization for the freshness."""

from __future__ import annotations

import logging
from time import monotonic
from typing import TYPE_CHECKING, Any

import dagster as dg

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

log = logging.getLogger(__name__)

OBSERVE_S = 30.0
# Dagster shows a check as not yet evaluated after each materialization: seldom enough that it is mostly shown.
MATERIALISE_S = 240.0


class Reporter:
    """Passes on what a feed says of itself.

    `shown` has the figures that each asset shows, none for all; `standby` an asset, and the figures by which it shows a
    run that stands by.
    """

    def __init__(
        self,
        context: dg.AssetExecutionContext,
        shown: Mapping[str, Collection[str]],
        standby: tuple[str, Collection[str]],
    ) -> None:
        self.led = False
        self._context, self._shown, self._standby = context, shown, standby
        self._materialised_at = 0.0
        self._role = ""

    def observe(self, said: dict[str, Any]) -> None:
        """Report figures as they are now."""
        self.led = self.led or said["role"] == "leader"
        try:
            self._report(said)
        except Exception as fault:  # noqa: BLE001 (whatever Dagster's storage says when it is away: the feed goes on)
            log.warning("observation lost: %s", fault)

    def results(self, totals: dict[str, Any]) -> Iterator[dg.MaterializeResult[None]]:
        """Give the assets' results; a run that never led has none."""
        if self.led:
            for asset, names in self._shown.items():
                yield dg.MaterializeResult(asset_key=asset, metadata=_figures(totals, names))

    def _report(self, said: dict[str, Any]) -> None:
        asset, names = self._standby
        standing = _figures(said, names)
        if said["role"] != self._role:
            self._role = said["role"]
            self._context.log.info("%s", standing)
        if fault := said.get("fault"):
            self._context.log.warning("%s", fault)
        if self._role != "leader":
            self._context.log_event(dg.AssetObservation(asset, metadata=standing))
            return
        due = monotonic() - self._materialised_at >= MATERIALISE_S
        if due:
            self._materialised_at = monotonic()
        tell = dg.AssetMaterialization if due else dg.AssetObservation
        for asset, names in self._shown.items():
            self._context.log_event(tell(asset, metadata=_figures(said, names)))


def _figures(said: dict[str, Any], names: Collection[str]) -> dict[str, Any]:
    figures = {name: said[name] for name in names or said if said.get(name) is not None}
    return {"role": said["role"], **figures}
