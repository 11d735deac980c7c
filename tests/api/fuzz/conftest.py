"""One API for all that is asked of it here."""

from __future__ import annotations

import pytest

from tests.api.fuzz.filled import filled


@pytest.fixture(scope="session")
def api(new_database, recorded, tmp_path_factory):
    with new_database() as url, filled(url, recorded, tmp_path_factory.mktemp("fuzz")) as running:
        yield running
        log = running.server.stop()
    assert "Traceback" not in log, log[-20_000:]
