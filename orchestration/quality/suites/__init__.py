"""All suites, one per table, in the order in which their rows are found: some rows are found by others."""

from __future__ import annotations

from orchestration.quality.suites.aggregates import AGGREGATES
from orchestration.quality.suites.catalogue import CATALOGUE
from orchestration.quality.suites.chain import CHAIN
from orchestration.quality.suites.delivery import DELIVERY
from orchestration.quality.suites.feed import FEED

SUITES = (*FEED, *CATALOGUE, *CHAIN, *AGGREGATES, *DELIVERY)
