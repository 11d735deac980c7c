"""Secrets that are replaced in the files from which programs read them."""

from __future__ import annotations

import stat

import pytest
from dotenv import dotenv_values

from config import stored_secrets


def test_a_variable_is_assigned_and_all_else_stays(tmp_path):
    file = tmp_path / ".env"
    file.write_text("# Settings\n#TOKEN=\nexport TOKEN = 'old' # mine\nOTHER=a$b\\1\nTOKEN_2=x")
    file.chmod(0o640)

    stored_secrets.assign(file, {"TOKEN": "new\\1", "MORE": "y"})

    assert file.read_text() == "# Settings\n#TOKEN=\nexport TOKEN =new\\1\nOTHER=a$b\\1\nTOKEN_2=x\nMORE=y\n"
    assert dotenv_values(file)["TOKEN"] == "new\\1"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_a_file_that_is_not_there_is_made_for_its_owner_only(tmp_path):
    stored_secrets.assign(tmp_path / ".env", {"TOKEN": "new"})

    assert (tmp_path / ".env").read_text() == "TOKEN=new\n"
    assert stat.S_IMODE((tmp_path / ".env").stat().st_mode) == 0o600


def test_a_roles_password_is_replaced_on_all_its_lines(tmp_path):
    file = tmp_path / "pgpass"
    file.write_text("# a:b:c:ada:old\ndb:5432:*:ada:o\\:ld\nfe80\\:\\:1:5432:*:ada:old\ndb:5432:ada:bob:ada\n")

    stored_secrets.set_password(file, "ada", "n:e\\w")

    assert file.read_text() == (
        "# a:b:c:ada:old\ndb:5432:*:ada:n\\:e\\\\w\nfe80\\:\\:1:5432:*:ada:n\\:e\\\\w\ndb:5432:ada:bob:ada\n"
    )


def test_a_role_without_a_line_is_an_error_and_nothing_changes(tmp_path):
    file = tmp_path / "pgpass"
    file.write_text("db:5432:*:ada:old\n")

    with pytest.raises(ValueError, match="no line for the user bob"):
        stored_secrets.set_password(file, "bob", "new")

    assert file.read_text() == "db:5432:*:ada:old\n"
