"""Generated secrets in files: whole or absent, and readable by their owner alone."""

from __future__ import annotations

import os
import stat

import pytest

from config import secret_files


def test_a_secret_is_written_for_its_owner_alone_and_replaced(tmp_path):
    file = tmp_path / "new" / "password"

    secret_files.write(file, "first")
    secret_files.write(file, "second")

    assert file.read_text() == "second"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(file.parent.iterdir()) == [file]


def test_what_an_interrupted_write_left_is_not_used_whoever_may_read_it(tmp_path):
    file, left = tmp_path / "password", tmp_path / ".password.new"
    left.write_text("for everyone")
    left.chmod(0o644)

    secret_files.write(file, "secret")

    assert file.read_text() == "secret"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_write_that_fails_leaves_the_former_secret(tmp_path, monkeypatch):
    file = tmp_path / "password"
    secret_files.write(file, "former")

    def full(_):
        raise OSError(28, "no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space left"):
        secret_files.write(file, "new")

    assert file.read_text() == "former"
