"""Generated secrets in files: whole or absent, and readable by their owner alone."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

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


def test_a_file_that_is_replaced_has_owner_and_mode_before_it_has_its_name_and_a_link_stays_one(tmp_path, monkeypatch):
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_text("former")
    file.chmod(0o640)
    link.symlink_to("file")
    modes = []
    renamed = Path.replace
    monkeypatch.setattr(
        Path, "replace", lambda new, to: modes.append(stat.S_IMODE(new.stat().st_mode)) or renamed(new, to)
    )

    secret_files.write(link, "new", link.stat())

    assert (file.read_text(), modes) == ("new", [0o640])
    assert link.is_symlink()


def test_a_former_text_is_kept_only_if_something_fails_after_the_file_was_replaced(tmp_path):
    file, former = tmp_path / "file", tmp_path / ".file.old"
    file.write_text("former")
    with secret_files.kept(file):
        assert former.read_text() == "former"
    assert not former.exists()
    with pytest.raises(KeyError), secret_files.kept(file):
        raise KeyError
    assert not former.exists()

    def fail_later():
        with secret_files.kept(file):
            secret_files.write(file, "new")
            raise KeyError

    with pytest.raises(ValueError, match=re.escape(str(former))):
        fail_later()

    assert (file.read_text(), former.read_text()) == ("new", "former")
