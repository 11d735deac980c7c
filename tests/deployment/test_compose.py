"""docker-compose.yml as rendered by Docker Compose, and its commands, run without a container engine."""

import json
import os
import re
import subprocess
import sys
from copy import deepcopy
from ipaddress import ip_address, ip_network
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from config.settings import Settings
from sql.database import sqlalchemy_url
from sql.roles.rights import API, PIPELINE, SITE
from tests.debian_programs import debian_program
from tests.deployment import image
from tests.deployment.conftest import SECRETS, rendered
from tests.roles import login_url

ROOT = Path(__file__).parents[2]
OURS = ("migrate", "code", "daemon", "webserver", "api", "site")
LOGINS = {role: f"{role.upper()}_DATABASE_URL" for role in (PIPELINE, API, SITE)}  # given to `migrate`
# Set by the image, or by each service itself.
OF_THE_IMAGE = {"data_dir", "cache_dir", "metering_dir", "node_modules", "dagster_port", "redis_url"}
OF_PRESAGE_UP = {"roles", "host_name", "max_runs"}

PATHS_WITH_KEYS = ["/v1/markets?api_key=psg_secret", "/stream?api_key=psg_secret", "/udf/history?api_key=psg_secret"]
PATHS_WITH_KEYS += ["/sse?key=psg_secret", "/sse/psg_secret/messages/", "/wallets?token=psg_secret", "/%ff?psg_secret"]
HEADERS_WITH_KEYS = ["X-Api-Key", "X-Debug-Token", "Authorization", "Cookie", "Referer", "User-Agent"]
ASKS = f"""
import time
from cli.stack import readiness

def ask(query):
    password = {SECRETS["PRESAGE_DAGSTER_PASSWORD"]!r}
    return readiness.fetch("http://127.0.0.1:3000/graphql", password=password, body={{"query": query}})

print(ask("{{ workspaceOrError {{ ... on Workspace {{ locationEntries {{"
          " locationOrLoadError {{ __typename }} }} }} }} }}"))
for _ in range(180):  # seconds: sensors look each five, and runs import for a while
    runs = (ask("{{ runsOrError {{ ... on Runs {{ results {{ jobName startTime }} }} }} }}") or {{}}).get("data")
    started = [run["jobName"] for run in runs["runsOrError"]["results"] if run["startTime"]] if runs else []
    if started:
        break
    time.sleep(1)
print("started:", started)

from urllib.error import HTTPError
from urllib.request import Request, urlopen
for path in {PATHS_WITH_KEYS}:
    for port in (8080, 8085):
        for method in ("GET", "POST"):
            headers = {{name: "psg_secret" for name in {HEADERS_WITH_KEYS}}}
            try:
                urlopen(Request(f"http://127.0.0.1:{{port}}{{path}}", headers=headers, method=method)).close()
            except HTTPError as error:
                error.close()
"""


def test_compose_reads_the_file_and_asks_for_the_secrets_it_needs(config):
    assert set(OURS) | {"api-2", "database", "backup", "proxy", "prometheus", "alertmanager", "grafana"} == set(
        config["services"]
    )
    for secret in SECRETS:
        done, _ = rendered(**{name: value for name, value in SECRETS.items() if name != secret})
        assert done.returncode != 0
        assert secret in done.stderr


def test_every_service_is_bounded_and_holds_no_more_rights_than_it_needs(config):
    for name, service in config["services"].items():
        assert int(service["deploy"]["resources"]["limits"]["memory"]) > 0, name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service["cap_drop"] == ["ALL"], name
        assert service.get("cap_add", []) == (["NET_BIND_SERVICE"] if name == "proxy" else []), name
        assert service["user"].partition(":")[0] not in {"", "0", "root"}, name
        assert not {"privileged", "pid", "ipc", "network_mode", "devices", "userns_mode"} & set(service), name
        assert ":latest" not in service["image"], name
        assert ":" in service["image"], name
    for name in {*OURS, "backup", "proxy", "prometheus", "alertmanager"}:
        assert config["services"][name]["read_only"] is True, name
    assert re.search(r"^USER 10001:10001$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)


def test_every_lasting_service_of_ours_has_a_health_check_and_waits_for_what_it_needs(config):
    services = config["services"]
    for name in ("database", "code", "daemon", "webserver", "api", "site"):
        assert services[name]["healthcheck"]["test"][0] == "CMD", name
    for name in ("code", "api"):
        assert services[name]["depends_on"]["migrate"]["condition"] == "service_completed_successfully"
    assert services["site"]["depends_on"]["api"]["condition"] == "service_healthy"


def test_two_apis_differ_by_their_names_alone(config):
    one, other = (dict(config["services"][name]) for name in ("api", "api-2"))
    networks = [each.pop("networks") for each in (one, other)]
    proxied = config["configs"]["proxy"]["content"]

    assert one == other
    assert [each["web"]["aliases"] for each in networks] == [["api-1"], ["api"]]
    assert "reverse_proxy api-1:8080 api-2:8080" in proxied
    drain_s = float(one["environment"]["PRESAGE_API_DRAIN_S"])
    assert drain_s > 2 * float(re.search(r"health_interval (\d+)s", proxied)[1])
    assert one["stop_grace_period"] == f"{drain_s + 17:.0f}s"


def test_only_the_proxy_is_open_to_other_machines(config):
    open_to_others = {
        name
        for name, service in config["services"].items()
        if any(port.get("host_ip") != "127.0.0.1" for port in service.get("ports", []))
    }
    assert open_to_others == {"proxy"}


def test_no_service_reaches_the_container_engine_or_files_of_the_host_beyond_the_documentation(config):
    mounted = {
        volume["source"]
        for service in config["services"].values()
        for volume in service.get("volumes", [])
        if volume["type"] == "bind"
    }
    assert mounted == {str(ROOT / "docs/operations")}
    for service in config["services"].values():
        assert all(volume["read_only"] for volume in service.get("volumes", []) if volume["type"] == "bind")
        assert not [name for name in service.get("environment") or {} if name.startswith("DOCKER")]


def test_services_share_a_network_only_if_one_of_them_has_to_reach_the_other(config):
    members = {name: set() for name in config["networks"]}
    for name, service in config["services"].items():
        for network in service["networks"]:
            members[network].add(name)

    assert members == {
        "pipeline": {"database", "migrate", "code", "daemon", "webserver"},
        "repository": {"database"},
        "repository-of-backups": {"backup"},
        "exchange": {"code"},
        "operator": {"webserver"},
        "api-database": {"database", "api", "api-2"},
        "api-exchange": {"api"},
        "api-2-exchange": {"api-2"},
        "site-database": {"database", "site"},
        "public": {"proxy"},
        "web": {"proxy", "api", "api-2", "site"},
        "metrics": {"prometheus", "api", "api-2"},
        "monitoring": {"prometheus", "alertmanager", "grafana"},
        "alerts": {"alertmanager"},
        "grafana": {"grafana"},
    }
    # A way to other machines is shared with nobody.
    for name, network in config["networks"].items():
        assert network.get("internal") or len(members[name]) == 1, name


def test_those_who_answer_strangers_cannot_reach_dagster(config):
    networks = {name: set(service["networks"]) for name, service in config["services"].items()}
    for dagster in ("code", "daemon", "webserver"):
        for public in ("proxy", "api", "api-2", "site", "prometheus", "alertmanager", "grafana"):
            assert not networks[dagster] & networks[public], (dagster, public)


def test_only_our_own_proxy_and_site_are_believed_and_only_prometheus_reads_the_metrics(config):
    services = config["services"]

    def address(name, network):
        return services[name]["networks"][network]["ipv4_address"]

    proxy, site = address("proxy", "web"), address("site", "web")
    assert services["api"]["environment"]["PRESAGE_TRUSTED_PROXIES"] == f"{proxy},{site}"
    assert services["site"]["environment"]["PRESAGE_TRUSTED_PROXIES"] == proxy
    assert services["api"]["environment"]["PRESAGE_METRICS_READERS"] == address("prometheus", "metrics")
    for network, names in {"web": ("proxy", "site"), "metrics": ("prometheus",)}.items():
        (pool,) = config["networks"][network]["ipam"]["config"]
        assert all(ip_address(address(name, network)) in ip_network(pool["subnet"]) for name in names)


def test_the_believed_addresses_can_be_set():
    _, config = rendered(
        *("--profile", "*"),
        **{
            **SECRETS,
            "PRESAGE_PROXY_IP": "10.1.2.3",
            "PRESAGE_SITE_IP": "10.1.2.4",
            "PRESAGE_WEB_SUBNET": "10.1.2.0/24",
        },
    )

    assert config["services"]["api"]["environment"]["PRESAGE_TRUSTED_PROXIES"] == "10.1.2.3,10.1.2.4"
    _, config = rendered(**SECRETS, PRESAGE_TRUSTED_PROXIES="192.0.2.1")
    assert config["services"]["api"]["environment"]["PRESAGE_TRUSTED_PROXIES"] == "192.0.2.1"


def test_plain_http_is_served_to_this_machine_only(config):
    open_to_others = {
        port["target"] for port in config["services"]["proxy"]["ports"] if port.get("host_ip") != "127.0.0.1"
    }
    assert open_to_others == {80, 443}


@pytest.mark.parametrize(("password", "status"), [("", 1), ("admin", 1), ("longer than admin", 127)])
def test_grafana_does_not_start_with_its_own_default_password(config, password, status):
    entrypoint = [part.replace("$$", "$") for part in config["services"]["grafana"]["entrypoint"]]

    ended = subprocess.run(
        entrypoint,
        env={"PATH": os.environ["PATH"], "GF_SECURITY_ADMIN_PASSWORD": password},
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode == status  # 127: here is no Grafana to be started
    assert ("set GRAFANA_PASSWORD" in ended.stderr) == (status == 1)


def test_every_image_is_of_one_version(config):
    dockerfile = (ROOT / "Dockerfile").read_text()
    bases = re.findall(r"^FROM (\S+:\S+)", dockerfile, re.MULTILINE)
    images = [service["image"] for service in config["services"].values() if "build" not in service]

    assert len(bases) == 5
    for reference in bases + images:
        # Debian's point releases have two numbers.
        name, _, digest = reference.partition("@")
        assert re.fullmatch(r"[a-z/]+:v?\d+\.\d+\.\d+(-[a-z0-9]+)*|debian:\d+\.\d+-slim", name), reference
        # That of TimescaleDB's image was not known: `make digests` asks the registry.
        assert re.fullmatch(r"sha256:[0-9a-f]{64}", digest) or name == "timescale/timescaledb:2.19.3-pg17", reference
    assert int(re.search(r"^FROM node:(\d+)", dockerfile, re.MULTILINE)[1]) in {24, 26}  # supported until 2028 and 2029
    assert "--require-hashes -r /tmp/uv.lock" in dockerfile


def test_every_setting_reaches_the_services(config):
    names = {
        field.validation_alias or f"PRESAGE_{name.upper()}"
        for name, field in Settings.model_fields.items()
        if name not in OF_THE_IMAGE | OF_PRESAGE_UP
    }
    services = config["services"]
    for_all = set(services["code"]["environment"])
    assert names <= for_all.union(
        *(services[name]["environment"] for name in ("api", "site", "webserver", "backup", "migrate"))
    )


def test_each_service_knows_the_password_of_its_own_login_and_of_no_other(config):
    knowing = {
        variable: {
            name
            for name, service in config["services"].items()
            if any(password in str(value) for value in (service.get("environment") or {}).values())
        }
        for variable, password in SECRETS.items()
        if variable in {"POSTGRES_PASSWORD", *(f"PRESAGE_{each}_PASSWORD" for each in ("PIPELINE", "API", "SITE"))}
    }

    assert knowing == {
        "POSTGRES_PASSWORD": {"database", "migrate"},
        "PRESAGE_PIPELINE_PASSWORD": {"migrate", "code", "daemon", "webserver"},
        "PRESAGE_API_PASSWORD": {"migrate", "api", "api-2"},
        "PRESAGE_SITE_PASSWORD": {"migrate", "site"},
    }


def test_the_address_of_the_read_replica_with_the_apis_password_is_known_to_the_api_alone():
    _, given = rendered(**SECRETS, DATABASE_READ_URL="postgresql://presage_api_login:a-password@replica/presage")
    knowing = {name for name, each in given["services"].items() if "a-password" in str(each.get("environment"))}

    assert knowing == {"api", "api-2"}


def test_the_repository_of_backups_and_its_secrets_are_known_to_the_database_and_its_backups_alone(config):
    _, given = rendered(**SECRETS, PRESAGE_BACKUP_REPOSITORY="s3://bucket", PRESAGE_BACKUP_PASSPHRASE="a passphrase")
    knowing = {name for name, each in given["services"].items() if "a passphrase" in each["environment"].values()}

    assert knowing == {"database", "backup"}
    assert not [name for name in OURS if any("_BACKUP_" in each for each in config["services"][name]["environment"])]
    # Without a need for it, the database has no way out.
    for name in ("repository", "repository-of-backups"):
        assert config["networks"][name]["internal"] is True
        _, opened = rendered(**SECRETS, PRESAGE_BACKUP_NETWORK_INTERNAL="false")
        assert not opened["networks"][name].get("internal")


def test_the_image_is_pinned_by_hashes_and_leaves_secrets_and_histories_out():
    text = (ROOT / "Dockerfile").read_text()
    assert "--require-hashes -r requirements.lock" in text
    assert "UV_COMPILE_BYTECODE=1 PYC_INVALIDATION_MODE=UNCHECKED_HASH" in text
    left_out = (ROOT / ".dockerignore").read_text().split()
    assert {".git", ".env", "..env.*", ".venv", ".presage", "node_modules"} <= set(left_out)


@pytest.fixture
def dagster_database(cluster, named_databases):
    """The name of the database that `presage migrate --with-dagster` creates beside ours; dropped for other tests."""
    yield "dagster"
    with psycopg.connect(cluster.url("postgres"), autocommit=True) as admin:
        admin.execute("drop database if exists dagster with (force)")


@pytest.mark.soak
@pytest.mark.timeout(450)
def test_each_service_comes_up_by_its_own_command_in_the_root_of_its_image_and_runs_start(
    config, database_url, dagster_database, tmp_path
):
    parts = conninfo_to_dict(database_url)
    services = deepcopy({name: config["services"][name] for name in (*OURS, "proxy")})
    owner, database = (quote(parts[key]) for key in ("user", "dbname"))  # the server of the tests has other names
    server = f"postgresql://{owner}:{SECRETS['POSTGRES_PASSWORD']}@database:5432"
    for name in OURS:
        role = {"migrate": None, "api": API, "site": SITE}.get(name, PIPELINE)
        environment, url = services[name]["environment"], f"{server}/{database}"
        environment["DATABASE_URL"] = login_url(url, role) if role else url
        if "DAGSTER_PG_URL" in environment:
            beside = login_url(f"{server}/{dagster_database}", PIPELINE)
            environment["DAGSTER_PG_URL"] = sqlalchemy_url(beside, driver="psycopg2")
    for role, name in LOGINS.items():
        services["migrate"]["environment"][name] = login_url(f"{server}/{database}", role)
    # All are on one machine here, where API and site have taken their ports.
    services["proxy"]["environment"] |= {"PRESAGE_API_ADDRESS": ":9080", "PRESAGE_SITE_ADDRESS": ":80"}
    services["proxy"]["environment"] |= {"XDG_DATA_HOME": "/data", "XDG_CONFIG_HOME": "/config"}  # as its image does
    services["proxy"]["command"] = ["/opt/caddy", "run", "--config", "/etc/Caddyfile", "--adapter", "caddyfile"]
    through_it = ["python", "-m", "cli.stack.readiness", "http://127.0.0.1:9080/health"]
    services["proxy"]["healthcheck"] = {"test": ["CMD", *through_it]}
    (tmp_path / "Caddyfile").write_text(config["configs"]["proxy"]["content"].replace("$$", "$"))
    copied = [
        *image.copies(tmp_path),
        (debian_program("caddy"), "/opt/caddy"),
        (tmp_path / "Caddyfile", "/etc/Caddyfile"),
    ]
    given = {
        "services": services,
        "names": [*config["services"], "api-1"],
        "checkout": str(ROOT),
        "copied": [(str(source), target) for source, target in copied],
        "image": image.environment(),
        "socket": f"{parts['host']}/.s.PGSQL.{parts['port']}",
        "asks": ASKS,
    }
    (tmp_path / "config.json").write_text(json.dumps(given))
    report = tmp_path / "report.json"
    command = ["unshare", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), "--net", "--mount"]
    done = subprocess.run(
        [*command, sys.executable, Path(__file__).with_name("running.py"), tmp_path / "config.json", report],
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(report.read_text())

    logs = {name: (tmp_path / f"{name}.log").read_text()[-2000:] for name in services}
    writable = {"code": ["/exports", "/tmp"], "proxy": ["/data", "/config", "/tmp"]}
    for name in services:
        assert told[name]["probe"] == {
            "user": told[name]["user"] or [0, 0, []],  # without root's rights here, the user is this one
            "capabilities": [0, 0, 1 << 10 if name == "proxy" else 0],  # CAP_NET_BIND_SERVICE, if a program brings it
            "new privileges": False,
            "writes": writable.get(name, ["/tmp"]),
        }
    assert told["migrate"]["exit"] == 0, logs["migrate"]
    for name in list(services)[1:]:
        assert told[name]["healthy"], f"{name}: {told[name]} {logs[name]}"
    loaded, started = told["loaded"]["text"].splitlines()
    assert "RepositoryLocation" in loaded
    assert started != "started: []", logs
    assert not [name for name in services if "psg_secret" in (tmp_path / f"{name}.log").read_text()]
