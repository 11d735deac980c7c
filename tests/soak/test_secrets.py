"""A whole stack is used rightly and wrongly, and killed: no secret is said anywhere but where it is meant to be.

Searched are logs, all files of the data folders, the database, Dagster's event log, base backups and their metadata,
command lines, running statements, output of commands, and answers. Not searched are the processes' environments, where
secrets are meant to be, and the answers that issue a secret.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
from pathlib import Path
from urllib.parse import quote

import pytest
from pydantic import SecretStr

from cli.stack.ports import choose
from config import secret_files
from config.settings import Settings
from sql import database
from sql.backup import programs
from sql.embedded import Cluster
from sql.queries import cursors
from tests.api.metering.mailbox import Mailbox
from tests.archived import DATABASE, SETTINGS, archived
from tests.orchestration.webhooks.receiving import receiving
from tests.ports import free_port
from tests.setting_kinds import holds
from tests.soak.searching import Hit, Search, Watcher, forms
from tests.soak.secrets_stack import SECRET_SETTINGS, Stack, environment_of, in_base64, mails, new, use

# Files below a server's folder, and below `presage up`'s, that are meant to hold a secret: for their owner only.
MEANT = {
    r"database/password": {"new database password"},
    r"database/backup/[\w.-]*\.conf": {"backup_passphrase", "backup_s3_key", "backup_s3_secret"},
    r"database/17/(base|pg_wal)/.*": {"cursor secret 0", "cursor secret 1"},  # rows of `settings`
}


def allowed(hit: Hit, folders: list[Path]) -> bool:
    """Return whether a file is meant to hold a secret, and only its owner can read it."""
    file = Path(hit.file)
    for folder in folders:
        if file.is_relative_to(folder):
            path = f"{folder.name}/{file.relative_to(folder)}"
            if any(re.fullmatch(pattern, path) and hit.secret in names for pattern, names in MEANT.items()):
                return file.stat().st_mode & 0o077 == 0
    return False


def test_every_setting_that_holds_a_secret_is_searched_for():
    fields = {name: field.annotation for name, field in Settings.model_fields.items()}
    suspicious = {
        name
        for name, annotation in fields.items()
        if re.search(r"password|passphrase|secret|token|(?<!metering_)keys?$", name) and holds(annotation, str)
    }

    assert {name for name, annotation in fields.items() if holds(annotation, SecretStr)} == SECRET_SETTINGS
    assert suspicious == set()


def test_a_secret_is_found_however_it_is_written(tmp_path):
    search = Search(tmp_path)
    secret = search.secret("it", "s3cr3t/+of?sixteen")
    for before in range(4):
        search.save("base64", in_base64("x" * before + secret + "more"))
        search.save("urlsafe", base64.urlsafe_b64encode(f"{'x' * before}{secret}".encode()))
    for text in (f"a {secret} b", f"?key={quote(secret, safe='')}&", json.dumps([secret]), f"\0\xff{secret}"):
        search.save("text", text)
    search.save("nothing", in_base64("s3cr3t/+of?fifteen"))

    assert {Path(hit.file).name for hit in search.hits()} == {
        file.name for file in search.folder.iterdir() if not file.name.endswith("nothing")
    }
    assert all(len(form) >= 16 for form in forms(secret))


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_no_secret_is_said_anywhere(tmp_path, capsys):
    search, box = Search(tmp_path), Mailbox()
    password = search.secret("database password", new())
    passphrase = search.secret("backup_passphrase", new())
    certificate = tmp_path / "certificate.pem"
    with archived(backup_passphrase=passphrase) as made:
        settings = {**SETTINGS, "log_statement": "all", "log_parameter_max_length": "2000"}
        made.cluster = Cluster(made.data_dir / "database", port=free_port(), settings=settings)
        secret_files.write(made.cluster.home / "password", password)
        made.start()
        stack = Stack(tmp_path, made, choose(None), search)
        with database.connect(made.url, autocommit=True) as conn:
            conn.execute("create role reader login superuser")
            database.set_password(conn, "reader", search.secret("reader's password", new()))
        watcher = Watcher(made.url)
        watcher.start()
        with contextlib.ExitStack() as open_:
            receiver, alerts = (open_.enter_context(receiving()) for _ in range(2))
            receiver.answer = lambda _number, seen: (200, {}, seen.event["data"].get("challenge", ""))
            mail = mails(box, certificate)
            mail.start()
            open_.callback(mail.stop)
            with stack.running(mail.port, alerts.url, certificate):
                box.password = stack.mail_password
                site_token = environment_of(stack.pid("api"))["PRESAGE_SITE_TOKEN"]
                search.secret("the site's token", site_token)
                conn = open_.enter_context(database.connect(made.url, autocommit=True))
                conn.execute("update tiers set credits_burst = 1000000, max_webhooks = 10")
                use(stack, box, receiver, conn)
                signing = [secret for (secret,) in cursors.secrets(conn)]
                for number, secret in enumerate(signing):
                    search.secret(f"cursor secret {number}", secret)
            stack.presage("rotate", "database-password", DATABASE_URL="", PRESAGE_DATA_DIR=str(made.data_dir))
            search.secret("new database password", (made.cluster.home / "password").read_text())
        watcher.stop()
        search.save("command-lines", b"\n".join(watcher.commands))
        search.save("statements", "\n".join(watcher.statements))
        for name in (DATABASE, "dagster"):
            dump = programs.run([programs.program("pg_dump", 17, None, newer=True)], made.cluster.url(name))
            for secret in signing:
                assert (secret in dump) == (name == DATABASE)  # a row of `settings`, as documented
                dump = dump.replace(secret, "")
            search.save(f"dump-of-{name}", dump)
        made.cluster.stop()
        home = made.cluster.home
        hits = search.hits(
            home, made.repository, made.data_dir, stack.data_dir, tmp_path / "elsewhere", tmp_path / "dump"
        )
        unwanted = {hit for hit in hits if not allowed(hit, [home])}
        meant = hits - unwanted
    with capsys.disabled():
        print(f"\n{len(search.secrets)} secrets; {len(meant)} where they are meant to be; {len(unwanted)} elsewhere")
    assert {hit.secret for hit in meant} >= {"new database password", "backup_passphrase"}, "the search finds nothing"
    assert not unwanted, "\n".join(f"{hit.secret}: {hit.file}" for hit in sorted(unwanted))
