"""Files of exports in a bucket: what a failure leaves behind."""

from __future__ import annotations

import io

import pyarrow as pa
import pytest

from api.data import exported
from config.settings import Settings


class WithoutSize(io.BytesIO):
    """A file of which the store cannot tell the size."""

    def seek(self, *_):
        raise OSError("connection reset")


class Store:
    def __init__(self):
        self.opened = []

    def open_input_file(self, _):
        self.opened.append(WithoutSize(b"rows"))
        return pa.PythonFile(self.opened[-1], mode="r")


def test_a_file_whose_size_the_store_cannot_tell_is_closed_and_leaves_its_place_to_another(monkeypatch, request):
    store = Store()
    monkeypatch.setattr(exported, "object_store", lambda _: store)
    bucket = exported.ExportBucket(Settings(_env_file=None, exports_s3="s3://presage/exports"))
    request.addfinalizer(bucket._threads.kill)

    for _ in range(exported.MAX_OPEN + 1):
        with pytest.raises(OSError, match="connection reset"):
            bucket.open("trades/2026-01-01.parquet")

    assert [file.closed for file in store.opened] == [True] * (exported.MAX_OPEN + 1)
