"""An object store for tests."""

from __future__ import annotations

import pytest
from moto.server import ThreadedMotoServer
from pyarrow import fs


@pytest.fixture(scope="module")
def object_store():
    """The URL of an S3 server on loopback, with a bucket `presage`."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    url = "http://{}:{}".format(*server.get_host_and_port())
    fs.S3FileSystem(
        endpoint_override=url, access_key="key", secret_key="secret", allow_bucket_creation=True
    ).create_dir("presage")
    yield url
    server.stop()
