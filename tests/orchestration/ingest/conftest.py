import pytest

from orchestration.ingest.storage.leader import LeaderConnection


@pytest.fixture
def leader(database_url):
    leader = LeaderConnection(database_url, "polymarket")
    yield leader
    leader.resign()
