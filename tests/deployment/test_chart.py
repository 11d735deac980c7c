"""The Helm chart as Helm renders it for five sets of values: valid, bounded, and the same services as Compose's."""

import importlib
import inspect
import re
import sys
import tomllib
import typing

import pytest
import yaml
from dagster._grpc.client import DagsterGrpcClient
from pydantic import SecretStr

from config import settings
from config.settings import Settings, variable
from orchestration import webserver
from tests.deployment.helm import CHART, ROOT, Schemas, helm, resources

VALUES = sorted(file.stem for file in (CHART / "ci").glob("*.yaml"))
META = yaml.safe_load((CHART / "Chart.yaml").read_text())
VERSIONS = (
    re.search(r">=(\d+\.\d+)\.0", META["kubeVersion"])[1],
    "1.37",
)  # the oldest that is allowed, and the newest known
OF_OPERATORS = {"Cluster", "ScheduledBackup", "ServiceMonitor", "PrometheusRule"}  # no schemas of theirs are at hand
LASTING = ("Deployment", "StatefulSet")
OURS = ("migrate", "code", "daemon", "webserver", "api", "site")
BY_NAME = {variable(name): field for name, field in Settings.model_fields.items()}
SECRET = {
    name
    for name, field in BY_NAME.items()
    if field.annotation is SecretStr or SecretStr in typing.get_args(field.annotation)
}
SCHEMA = yaml.safe_load((CHART / "values.schema.json").read_text())
# Set by the chart or by the image; backups are the database's; Kalshi is read by no process of the chart yet.
NOT_GIVEN = {f"PRESAGE_{name}" for name in ("DATA_DIR", "CACHE_DIR", "METERING_DIR", "NODE_MODULES", "DAGSTER_PORT")}
NOT_GIVEN.add("PRESAGE_KALSHI_PRIVATE_KEY_FILE")

everywhere = pytest.mark.parametrize("values", VALUES)


def rendered(values):
    return resources("--values", str(CHART / f"ci/{values}.yaml"))


def of_kind(values, *kinds):
    return [each for each in rendered(values) if each["kind"] in kinds]


def pods(values):
    """Return pod templates by the names of what makes them."""
    return {each["metadata"]["name"]: each["spec"]["template"] for each in of_kind(values, *LASTING, "Job")}


def component(template):
    return template["metadata"]["labels"]["app.kubernetes.io/component"]


def by_component(values):
    return {component(template): template for template in pods(values).values()}


def containers(template):
    return [*template["spec"].get("initContainers", []), *template["spec"]["containers"]]


def environment(values, container):
    """Return a container's variables: those of the ConfigMap, and its own; of a Secret as a pair of name and key."""
    (settings,) = of_kind(values, "ConfigMap")
    own = {
        each["name"]: each["value"]
        if "value" in each
        else tuple(each["valueFrom"]["secretKeyRef"][key] for key in ("name", "key"))
        for each in container["env"]
    }
    return {**settings["data"], **own}


def nulls(value, path=""):
    if isinstance(value, dict):
        return [found for key, each in value.items() for found in nulls(each, f"{path}.{key}")]
    if isinstance(value, list):
        return [found for each in value for found in nulls(each, f"{path}[]")]
    return [path] if value is None else []


@pytest.fixture(scope="module", params=VERSIONS)
def schemas(request):
    return Schemas(request.param)


def test_there_are_five_sets_of_values():
    assert VALUES == ["cloudnativepg", "hardened", "minimal", "monitoring", "shards"]


@everywhere
def test_each_resource_is_as_kubernetes_schemas_ask(values, schemas):
    unchecked = set()
    for resource in rendered(values):
        errors = schemas.errors(resource)
        assert not errors, f"{resource['kind']} {resource['metadata']['name']}: {errors}"
        assert nulls(resource) == [], "the schemas take null for everything"
        if errors is None:
            unchecked.add(resource["kind"])

    assert unchecked <= OF_OPERATORS


@pytest.mark.parametrize(
    ("change", "found"), [({"replicas": "two"}, "spec.replicas"), ({"replica": 2}, "'replica' was unexpected")]
)
def test_the_schemas_find_what_is_wrong(schemas, change, found):
    (deployment,) = [each for each in of_kind("minimal", "Deployment") if each["metadata"]["name"] == "presage-api"]
    wrong = {**deployment, "spec": {**deployment["spec"], **change}}

    assert found in str(schemas.errors(wrong))


@everywhere
def test_helm_finds_nothing_to_complain_of(values):
    done = helm("lint", "--strict", CHART, "--values", CHART / f"ci/{values}.yaml")

    assert done.returncode == 0, done.stdout + done.stderr


@everywhere
def test_every_container_is_bounded_and_holds_no_rights(values):
    for name, template in pods(values).items():
        spec = template["spec"]
        assert spec["securityContext"]["runAsNonRoot"] is True, name
        assert spec["securityContext"]["runAsUser"] == 10001, name
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert spec["automountServiceAccountToken"] is False, name
        # Kubernetes would set PRESAGE_API_PORT to tcp://…, for the Service presage-api.
        assert spec["enableServiceLinks"] is False, name
        assert spec["shareProcessNamespace"] is True, name
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec), name
        assert {kind for volume in spec["volumes"] for kind in volume} <= {"name", "emptyDir", "persistentVolumeClaim"}
        for container in containers(template):
            resources = container["resources"]
            assert set(resources["limits"]) == set(resources["requests"]) == {"cpu", "memory"}, name
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }, name


@everywhere
def test_every_lasting_container_is_probed(values):
    for each in of_kind(values, *LASTING):
        (container,) = each["spec"]["template"]["spec"]["containers"]
        probed = {probe for probe in ("startupProbe", "livenessProbe", "readinessProbe") if probe in container}
        # Nobody connects to the daemon; the console has nothing to end for.
        asked = {
            "daemon": {"startupProbe", "livenessProbe"},
            "console": {"readinessProbe"},
        }.get(container["name"], {"startupProbe", "livenessProbe", "readinessProbe"})
        assert probed == asked, each["metadata"]["name"]


@everywhere
def test_everything_waits_for_the_schema_but_what_makes_it(values):
    for template in pods(values).values():
        waits = [each["command"] for each in template["spec"].get("initContainers", [])]
        assert waits == ([] if component(template) == "migrate" else [["python", "-m", "cli.stack.migrated"]])
        if waits:  # by the login of its own process
            (first,), (own,) = template["spec"]["initContainers"], template["spec"]["containers"]
            assert first["env"] == own["env"]


def test_each_service_runs_as_composes_does(config):
    for name in OURS:
        service, template = config["services"][name], by_component("minimal")[name]
        (container,) = template["spec"]["containers"]
        assert container["command"] == service["command"], name
        assert container["image"] == service["image"], name
        assert "args" not in container, name
        context = template["spec"]["securityContext"]
        assert service["user"] == f"{context['runAsUser']}:{context['runAsGroup']}", name
        assert service["read_only"] == container["securityContext"]["readOnlyRootFilesystem"], name
        assert service["init"] == template["spec"]["shareProcessNamespace"], name
        assert service["tmpfs"] == ["/tmp:size=512m,mode=1777"], name
        tmp = next(volume["emptyDir"] for volume in template["spec"]["volumes"] if volume["name"] == "tmp")
        assert tmp == {"medium": "Memory", "sizeLimit": "512Mi"}, name
        limit = int(service["deploy"]["resources"]["limits"]["memory"])
        assert container["resources"]["limits"]["memory"] == f"{limit >> 30}Gi", name
        mounted = {volume["target"]: volume.get("read_only", False) for volume in service.get("volumes", [])}
        given = {mount["mountPath"]: mount.get("readOnly", False) for mount in container["volumeMounts"]}
        assert given == {"/tmp": False, **mounted}, name
    for feed in ("live", "settlement"):  # Dagster's runs of Compose are the same image
        (container,) = by_component("shards")[feed]["spec"]["containers"]
        assert container["image"] == config["services"]["code"]["image"]


def test_what_is_set_for_a_service_is_what_compose_sets(config):
    of_ours = {"PRESAGE_API_URL", "PRESAGE_API_DRAIN_S", "PRESAGE_METRICS_READERS", "PRESAGE_LIVE_SHARDS"}
    of_ours |= {"PRESAGE_TRUSTED_PROXIES"}
    for name in OURS:
        (container,) = by_component("minimal")[name]["spec"]["containers"]
        theirs = config["services"][name]["environment"]
        for key, value in environment("minimal", container).items():
            if isinstance(value, str) and key not in of_ours:
                assert theirs[key] == value, f"{name}: {key}"
            assert key in theirs or key in {"PRESAGE_TRUSTED_PROXIES", "PRESAGE_LIVE_SHARDS"}, f"{name}: {key}"


@everywhere
def test_every_image_of_ours_is_named_in_one_place(values):
    given = yaml.safe_load((CHART / f"ci/{values}.yaml").read_text()).get("image", {})
    tag = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    registry = f"{given['registry']}/" if "registry" in given else ""
    digest = f"@{given['digest']}" if "digest" in given else ""
    images = {container["image"] for template in pods(values).values() for container in containers(template)}

    assert META["appVersion"] == META["version"] == tag
    assert images == {f"{registry}presage:{tag}{digest}"}
    assert "image:" not in "".join(
        line for file in (CHART / "templates").glob("*.yaml") for line in file.read_text().splitlines()
    )


@everywhere
def test_every_setting_that_is_passed_is_one_and_has_a_value_that_it_takes(values):
    for template in pods(values).values():
        for container in containers(template):
            given = environment(values, container)
            assert set(given) <= {*BY_NAME, "DAGSTER_PG_URL"}
            plain = {name: value for name, value in given.items() if isinstance(value, str) and value}
            Settings(_env_file=None, **plain)
            assert not set(plain) & SECRET


def test_settings_that_are_neither_secret_nor_the_charts_own_can_be_given():
    (container,) = by_component("minimal")["api"]["spec"]["containers"]
    (site,) = by_component("minimal")["site"]["spec"]["containers"]
    fixed = {*environment("monitoring", container), *environment("monitoring", site)}
    backups = {name for name in BY_NAME if "_BACKUP_" in name}

    assert set(SCHEMA["properties"]["settings"]["properties"]) == set(BY_NAME) - SECRET - fixed - NOT_GIVEN - backups


def test_what_is_given_reaches_the_processes():
    (container,) = by_component("shards")["code"]["spec"]["containers"]
    given = environment("shards", container)

    assert given["PRESAGE_STREAM_QUEUE_BYTES"] == "2097152"
    assert given["PRESAGE_LIVE_SILENCE_S"] == "7.5"
    assert given["PRESAGE_LIVE_STANDBY_DEFERS"] == "true"
    changed = resources("--values", str(CHART / "ci/shards.yaml"), "--set", "settings.PRESAGE_BACKFILL_DAYS=31")
    sums = [
        {
            each["spec"]["template"]["metadata"]["annotations"]["checksum/settings"]
            for each in of
            if each["kind"] in LASTING
        }
        for of in (rendered("shards"), changed)
    ]
    assert [len(each) for each in sums] == [1, 1]
    assert sums[0] != sums[1], "a process reads its settings when it starts"


SECRETS_OF = {
    "migrate": {"owner", "pipeline", "api", "site"},
    "console": {"owner", "pipeline", "api", "site", "webhooks"},
    "code": {"pipeline", "webhooks"},
    "daemon": {"pipeline"},
    "webserver": {"pipeline", "dagster"},
    "api": {"api", "site-token", "webhooks"},
    "site": {"site", "site-token"},
    "live": {"pipeline"},
    "settlement": {"pipeline"},
}


@pytest.mark.parametrize(("values", "prefix"), [("shards", "presage-"), ("hardened", "vault-")])
def test_each_process_knows_the_secrets_that_it_needs_and_no_others(values, prefix):
    for template in pods(values).values():
        known = {
            value[0].removeprefix(prefix)
            for container in containers(template)
            for value in environment(values, container).values()
            if isinstance(value, tuple)
        }
        assert known == SECRETS_OF[component(template)], component(template)


def test_the_owner_of_cloudnativepgs_database_is_known_by_its_own_secret():
    knowing = {
        name
        for name, template in by_component("cloudnativepg").items()
        for container in containers(template)
        if ("presage-database-2-app", "uri") in environment("cloudnativepg", container).values()
    }

    assert knowing == {"migrate", "console"}


@everywhere
def test_no_secret_is_made_or_written_down(values):
    assert of_kind(values, "Secret") == []
    text = yaml.safe_dump_all(rendered(values))
    assert not re.search(r"postgresql://|postgresql\+|psg_|password: *\S", text)


def test_a_shards_leader_and_its_standby_are_on_different_nodes():
    feeds = {each["metadata"]["name"]: each["spec"] for each in of_kind("shards", "StatefulSet")}

    assert set(feeds) == {
        *(f"presage-live-{number}of4" for number in (1, 2, 3, 4)),
        *("presage-live-1of2", "presage-live-2of2"),  # until the new ones are ready
        "presage-settlement",
    }
    for name, spec in feeds.items():
        template = spec["template"]
        (rule,) = template["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        assert spec["replicas"] == 2
        assert rule["topologyKey"] == "kubernetes.io/hostname"
        assert matching(rule["labelSelector"], feeds) == {name}, "and no pods of other shards are kept away"
        assert "volumeClaimTemplates" not in spec
        (budget,) = [each for each in of_kind("shards", "PodDisruptionBudget") if each["metadata"]["name"] == name]
        assert budget["spec"]["maxUnavailable"] == 1
        assert matching(budget["spec"]["selector"], feeds) == {name}


def matching(selector, specs):
    wanted = selector["matchLabels"].items()
    return {name for name, spec in specs.items() if wanted <= spec["template"]["metadata"]["labels"].items()}


@pytest.mark.parametrize("values", ["minimal", "shards"])
def test_the_number_of_shards_is_the_same_for_the_pods_and_for_dagster(values):
    (settings,) = of_kind(values, "ConfigMap")
    commands = [template["spec"]["containers"][0]["command"] for template in pods(values).values()]
    shards = {command[command.index("--shard") + 1] for command in commands if "--shard" in command}
    wanted = settings["data"]["PRESAGE_LIVE_SHARDS"]

    assert {shard for shard in shards if shard.endswith(f"/{wanted}")} == {
        f"{number}/{wanted}" for number in range(1, int(wanted) + 1)
    }


@pytest.mark.parametrize("feed", ["live", "settlement"])
def test_a_feeds_command_is_one_that_the_feed_takes(feed, monkeypatch, capsys):
    (container,) = by_component("shards")[feed]["spec"]["containers"]
    given = Settings(_env_file=None, chain_rpc_urls="http://127.0.0.1:1")
    monkeypatch.setattr(settings, "get", lambda: given)
    probes = [container[f"{kind}Probe"]["exec"]["command"] for kind in ("startup", "liveness", "readiness")]
    for _, _, module, *arguments in (container["command"], *probes):
        monkeypatch.setattr(sys, "argv", [module, *arguments])
        found = importlib.import_module(module if module == "orchestration.feeds.probe" else f"{module}.__main__")

        assert found.main() > 0
        printed = capsys.readouterr()
        assert "DATABASE_URL is not set" in printed.out + printed.err


def test_probes_ask_what_dagster_answers():
    code, ui = (by_component("minimal")[name]["spec"]["containers"][0] for name in ("code", "webserver"))

    assert code["livenessProbe"]["grpc"]["port"] == code["ports"][0]["containerPort"] == 4000
    service = code["livenessProbe"]["grpc"]["service"]
    assert f'HealthCheckRequest(service="{service}")' in inspect.getsource(DagsterGrpcClient)
    asked = ui["readinessProbe"]["httpGet"]
    assert asked["path"] == webserver.OPEN_PATH
    assert asked["httpHeaders"] == [{"name": "Host", "value": "localhost"}]
    assert "localhost" in webserver.LOOPBACK_NAMES


def test_a_site_serves_on_until_proxies_know_and_has_the_time_to_drain(config):
    spec = by_component("minimal")["site"]["spec"]
    (container,) = spec["containers"]
    program, pause_s = container["lifecycle"]["preStop"]["exec"]["command"]
    probe = container["readinessProbe"]

    assert program == "sleep"
    assert float(pause_s) >= probe["periodSeconds"] * probe["failureThreshold"]
    assert config["services"]["site"]["stop_grace_period"] == f"{spec['terminationGracePeriodSeconds'] - int(pause_s)}s"


def test_an_api_has_the_time_to_drain():
    (container,) = by_component("minimal")["api"]["spec"]["containers"]
    drain_s = float(environment("minimal", container)["PRESAGE_API_DRAIN_S"])
    probe = container["readinessProbe"]

    assert drain_s >= probe["periodSeconds"] * probe["failureThreshold"]
    assert by_component("minimal")["api"]["spec"]["terminationGracePeriodSeconds"] == drain_s + 17  # as in Compose


@everywhere
def test_api_and_site_are_scaled_spread_and_never_all_evicted(values):
    for name in ("presage-api", "presage-site"):
        parts = {each["kind"]: each for each in rendered(values) if each["metadata"]["name"] == name}
        assert "replicas" not in parts["Deployment"]["spec"], "an upgrade would undo the scaling"
        scaler = parts["HorizontalPodAutoscaler"]["spec"]
        assert 2 <= scaler["minReplicas"] <= scaler["maxReplicas"]
        assert scaler["scaleTargetRef"]["name"] == name
        assert parts["PodDisruptionBudget"]["spec"]["maxUnavailable"] == 1
        assert parts["Deployment"]["spec"]["template"]["spec"]["topologySpreadConstraints"]


@everywhere
def test_every_selector_selects_and_every_name_is_there(values):
    templates = {name: {"template": template} for name, template in pods(values).items()}
    everything = rendered(values)
    names = {(each["kind"], each["metadata"]["name"]) for each in everything}
    optional = {"presage-settlement"}  # its policy is there before it
    for each in everything:
        kind, spec, name = each["kind"], each.get("spec", {}), each["metadata"]["name"]
        if kind in {*LASTING, "PodDisruptionBudget"}:
            assert matching(spec["selector"], templates) == {name}, name
        if kind == "Service":
            assert matching({"matchLabels": spec["selector"]}, templates), name
        if kind == "NetworkPolicy" and name not in {*optional, "presage-database"}:
            assert matching(spec["podSelector"], templates), name
        if kind == "ServiceMonitor":
            (service,) = [
                other for other in everything if (other["kind"], other["metadata"]["name"]) == ("Service", name)
            ]
            assert spec["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
            assert spec["endpoints"][0]["port"] == service["spec"]["ports"][0]["name"]
            assert service["metadata"]["labels"][spec["jobLabel"]] == "presage"  # as the rules have it
        if kind == "Ingress":
            for rule in spec["rules"]:
                assert ("Service", rule["http"]["paths"][0]["backend"]["service"]["name"]) in names
        for volume in spec.get("template", {}).get("spec", {}).get("volumes", []):
            if claim := volume.get("persistentVolumeClaim"):
                assert ("PersistentVolumeClaim", claim["claimName"]) in names
    assert len(names) == len(everything)
    assert all(len(name) <= 63 for _, name in names)
    workspace = yaml.safe_load((ROOT / "workspace.docker.yaml").read_text())["load_from"][0]["grpc_server"]
    assert ("Service", workspace["host"]) in names


def reached(values):
    """Return whom each component may reach: components, `database` and `outside`."""
    database = {"shards": "10.1.2.3/32", "monitoring": "presage-database"}[values]
    found = {}
    for policy in of_kind(values, "NetworkPolicy"):
        name, spec = policy["metadata"]["name"].removeprefix("presage-"), policy["spec"]
        if name == "database":
            continue
        assert spec["policyTypes"] == ["Ingress", "Egress"], name
        peers = [peer for rule in spec["egress"] for peer in rule.get("to", [])]
        found[name] = {
            "outside" if "0.0.0.0/0" in text else "database" if database in text else component_of(peer)
            for peer in peers
            if "::/0" not in (text := str(peer)) and "10.1.2.4" not in text
        }
        assert all("to" in rule or {port["port"] for port in rule["ports"]} == {53} for rule in spec["egress"]), name
    return found


def component_of(peer):
    return peer["podSelector"]["matchLabels"]["app.kubernetes.io/component"]


@pytest.mark.parametrize("values", ["shards", "monitoring"])
def test_each_process_reaches_what_it_reaches_in_compose(values, config):
    networks = {name: set(service["networks"]) for name, service in config["services"].items()}
    outside = {name for name, network in config["networks"].items() if not network.get("internal")}
    allowed = reached(values)

    for name in OURS:
        others = {"code", "daemon", "webserver", "api", "site", "database"} - {name}
        shared = {other for other in others if networks[name] & networks[other]}
        shared |= {"outside"} if networks[name] & (outside - {"operator"}) else set()
        assert allowed[name] <= shared, name
        assert {"database"} <= allowed[name], name
        assert ("outside" in allowed[name]) == ("outside" in shared), name
    for feed in ("live", "settlement"):
        assert allowed[feed] == {"database", "outside"}
    assert allowed["console"] == {"database"}


def test_only_proxy_site_and_prometheus_reach_the_api_and_nobody_dagsters_ui():
    admitted = {
        policy["metadata"]["name"].removeprefix("presage-"): [
            peer.get("namespaceSelector", {}).get("matchLabels", {}).get("kubernetes.io/metadata.name")
            or component_of(peer)
            for rule in policy["spec"].get("ingress", [])
            for peer in rule["from"]
        ]
        for policy in of_kind("monitoring", "NetworkPolicy")
        if policy["metadata"]["name"] != "presage-database"
    }

    assert {name: sorted(peers) for name, peers in admitted.items() if peers} == {
        "api": ["ingress", "monitoring", "site"],
        "site": ["ingress"],
        "code": ["daemon", "webserver"],
    }
    (database,) = [
        each for each in of_kind("monitoring", "NetworkPolicy") if each["metadata"]["name"] == "presage-database"
    ]
    ours, others = (rule["from"] for rule in database["spec"]["ingress"])
    assert ours == [
        {"podSelector": {"matchLabels": {"app.kubernetes.io/name": "presage", "app.kubernetes.io/instance": "presage"}}}
    ]
    assert [peer.get("namespaceSelector") for peer in others][1:] == [
        {"matchLabels": {"kubernetes.io/metadata.name": "cnpg-system"}}
    ]


def test_metrics_are_for_prometheus_alone_and_the_proxy_is_believed():
    (container,) = by_component("minimal")["api"]["spec"]["containers"]
    assert environment("minimal", container)["PRESAGE_METRICS_READERS"] == "127.0.0.1"

    (container,) = by_component("monitoring")["api"]["spec"]["containers"]
    given = environment("monitoring", container)
    assert given["PRESAGE_METRICS_READERS"] == given["PRESAGE_TRUSTED_PROXIES"] == "10.42.0.0/16"
    assert given["PRESAGE_PUBLIC_SITE_URL"] == "https://example.org"


def test_the_rules_are_those_of_the_documentation():
    (rules,) = of_kind("monitoring", "PrometheusRule")

    assert rules["spec"] == yaml.safe_load((ROOT / "docs/operations/prometheus-rules.yml").read_text())


def test_the_database_is_made_for_migrations_that_are_no_superuser():
    (cluster,) = of_kind("monitoring", "Cluster")
    start = cluster["spec"]["bootstrap"]["initdb"]

    assert (start["database"], start["owner"]) == ("presage", "presage")
    assert start["postInitSQL"] == ["alter role presage createrole createdb"]
    assert start["postInitApplicationSQL"] == ["create extension timescaledb"]
    assert cluster["spec"]["postgresql"]["synchronous"] == {"method": "any", "number": 1}
    assert of_kind("monitoring", "ScheduledBackup") == []


def test_a_restore_reads_the_former_clusters_backups_and_writes_its_own():
    (cluster,) = of_kind("cloudnativepg", "Cluster")
    (backup,) = of_kind("cloudnativepg", "ScheduledBackup")
    (origin,), (own,) = cluster["spec"]["externalClusters"], cluster["spec"]["plugins"]

    assert cluster["spec"]["bootstrap"]["recovery"]["source"] == origin["name"]
    assert origin["plugin"]["parameters"] == {"barmanObjectName": "presage-backups", "serverName": "presage-database"}
    assert own["parameters"] == {"barmanObjectName": "presage-backups"}
    assert backup["spec"]["cluster"]["name"] == cluster["metadata"]["name"] == "presage-database-2"


def test_data_outlives_the_release():
    kept = {
        each["kind"]
        for each in rendered("cloudnativepg")
        if each["metadata"].get("annotations", {}).get("helm.sh/resource-policy") == "keep"
    }

    assert kept == {"Cluster", "PersistentVolumeClaim"}


MINIMAL = ["--values", CHART / "ci/minimal.yaml"]
CLUSTER = ["--set", "database.cluster.enabled=true"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([*MINIMAL, "--set", "imgae.tag=1"], "additional properties 'imgae' not allowed"),
        ([*MINIMAL, "--set", "settings.PRESAGE_LIVE_WINDOWS=1"], "'PRESAGE_LIVE_WINDOWS' not allowed"),
        ([*MINIMAL, "--set", "settings.PRESAGE_DEBUG_TOKEN=x"], "'PRESAGE_DEBUG_TOKEN' not allowed"),
        ([*MINIMAL, "--set", "live.shards=two"], "at '/live/shards': got string, want integer"),
        ([*MINIMAL, "--set", "live.shards=65"], "at '/live/shards'"),
        ([*MINIMAL, "--set", "image.tag=latest"], "at '/image/tag'"),
        ([*MINIMAL, "--set", "public.apiUrl=http://api.example.org"], "at '/public/apiUrl'"),
        ([*MINIMAL, "--set", "api.resources.limits.cpu=null"], "missing property 'cpu'"),
        ([*MINIMAL, "--set", "live.formerShards=1"], "live.formerShards is the number of shards before a change"),
        ([*MINIMAL, "--set", "public.ingress.enabled=true"], "public.ingress needs public.apiUrl"),
        ([*MINIMAL, "--set", "monitoring.enabled=true"], "monitoring.readers: say by its networks"),
        ([], "database.peers: say where the database is"),
        (CLUSTER, "database.cluster.image: name an image"),
        ([*MINIMAL, "--kube-version", "1.30.0"], "incompatible with Kubernetes v1.30.0"),
        ([*MINIMAL, "--name-template", 41 * "x"], "more than 40 characters"),
    ],
)
def test_values_that_are_unknown_or_cannot_work_are_refused_by_name(given, message):
    done = helm("template", CHART, *given)

    assert done.returncode != 0
    assert message in done.stderr
