from tests.orchestration.lake.engines import duck  # noqa: F401 (a fixture)
