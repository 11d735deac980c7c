"""Which mirror the machine's own apt configuration names."""

from __future__ import annotations

import pytest

from sql.embedded import debian
from sql.embedded.debian import AptSource
from sql.embedded.errors import EmbeddedError

DEB822 = """\
# What the image was made from
Types: deb deb-src
# http://snapshot.example/archive
URIs: http://mirror.example/debian https://other.example/debian/
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mDMEY865UxYJKwYBBAHaRw8BAQdAd7Z0srwuhlB6JKFkcf4HU4SSS
 -----END PGP PUBLIC KEY BLOCK-----

Types: deb
Enabled: no
URIs: http://off.example/debian
Suites: bookworm
Components: main

Types: deb-src
URIs: http://source.example/debian
Suites: bookworm
Components: main
"""

ONE_LINE = """\
# deb cdrom:[Debian 12]/ bookworm main
deb [arch=amd64 signed-by=/keys/debian-archive-keyring.gpg] http://mirror.example/debian bookworm main # x
deb-src http://mirror.example/debian bookworm main
deb\thttp://mirror.example/debian  bookworm-updates  main
deb http://mirror.example/debian-security bookworm-security main
deb http://flat.example/ ./
deb https://apt.vendor.example stable main
broken line
"""


def test_a_sources_file_gives_each_enabled_binary_archive():
    found = list(debian.deb822(DEB822))

    assert [(source.uri, source.suite) for source in found] == [
        ("http://mirror.example/debian", "bookworm"),
        ("http://mirror.example/debian", "bookworm-updates"),
        ("https://other.example/debian/", "bookworm"),
        ("https://other.example/debian/", "bookworm-updates"),
        ("http://mirror.example/debian-security", "bookworm-security"),
    ]
    assert found[0].components == ("main", "contrib")
    assert found[0].signed_by == "/usr/share/keyrings/debian-archive-keyring.gpg"
    assert found[-1].signed_by is None  # the key itself is there, not the path of one


def test_a_list_file_gives_each_binary_archive():
    found = list(debian.one_line(ONE_LINE))

    assert found == [
        AptSource(
            "http://mirror.example/debian",
            "bookworm",
            ("main",),
            "/keys/debian-archive-keyring.gpg",
        ),
        AptSource("http://mirror.example/debian", "bookworm-updates", ("main",)),
        AptSource("http://mirror.example/debian-security", "bookworm-security", ("main",)),
        AptSource("http://flat.example/", "./", ()),
        AptSource("https://apt.vendor.example", "stable", ("main",)),
    ]


def test_debians_own_mirror_comes_before_vendors_that_use_its_names():
    sources = [
        AptSource("https://apt.vendor.example", "stable", ("main",), "/etc/apt/keyrings/vendor.gpg"),
        AptSource("https://packages.example/debian/12/prod", "bookworm", ("main",), "/etc/apt/keyrings/other.gpg"),
        *debian.one_line(ONE_LINE),
    ]

    assert debian.mirrors(sources)[0].uri == "http://mirror.example/debian"
    assert [source.uri for source in debian.security(sources)] == ["http://mirror.example/debian-security"]


def test_a_mirror_list_kept_in_a_file_is_a_mirror():
    uri = "mirror+file:///etc/apt/mirrors/debian.list"
    text = f"Types: deb\nURIs: {uri}\nSuites: bookworm bookworm-updates\nComponents: main\n"

    assert [source.uri for source in debian.mirrors(debian.deb822(text))] == [uri]


@pytest.mark.parametrize(
    "text",
    [
        "deb http://archive.example/ubuntu noble main universe\ndeb http://archive.example/ubuntu noble-security main",
        "deb cdrom:[Debian]/ bookworm main",
        "",
    ],
)
def test_a_machine_of_another_kind_has_no_mirror(text):
    assert debian.mirrors(debian.one_line(text)) == []


def test_without_a_mirror_the_message_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(debian, "machine_sources", list)

    with pytest.raises(EmbeddedError, match="none of this machine's apt sources is a Debian mirror") as failure:
        debian.download("amd64", tmp_path, print)

    assert "DATABASE_URL" in failure.value.remedy


def test_a_failed_download_shows_what_apt_said(tmp_path, monkeypatch):
    monkeypatch.setattr(debian, "CONFIGURATION", debian.CONFIGURATION + 'Acquire::Retries "0";\n')
    monkeypatch.setattr(
        debian, "machine_sources", lambda: [AptSource("http://127.0.0.1:9/debian", "bookworm", ("main",))]
    )

    with pytest.raises(EmbeddedError, match=r"reading Debian's package list failed(.|\n)*127\.0\.0\.1:9") as failure:
        debian.download("amd64", tmp_path, print)

    assert "check the network" in failure.value.remedy


def test_keys_that_are_too_old_are_named_as_the_cause():
    failure = debian._failed("reading", ["W: GPG error: … NO_PUBKEY 6ED0E7B82643E131"])

    assert "--only-upgrade debian-archive-keyring" in failure.remedy


@pytest.mark.parametrize(
    ("file", "name", "version"),
    [
        ("postgresql-17-timescaledb_2.19.3+dfsg-1+deb13u1_amd64.deb", "postgresql-17-timescaledb", "2.19.3"),
        ("postgresql-17_17.12-0+deb13u1_arm64.deb", "postgresql-17", "17.12"),
        ("zlib1g_1%3a1.3.dfsg+really1.3.1-1+deb13u1_amd64.deb", "zlib1g", "1.3.dfsg"),
    ],
)
def test_file_names_tell_package_and_version(tmp_path, file, name, version):
    assert (debian.name_of(tmp_path / file), debian.version_of(tmp_path / file)) == (name, version)
