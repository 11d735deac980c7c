"""Each process runs as the same service in Compose does."""

import importlib
import inspect
import sys

import pytest
from dagster._grpc.client import DagsterGrpcClient

from config import settings
from config.settings import Settings
from orchestration import webserver
from tests.deployment.chart import (
    OURS,
    by_component,
    component,
    environment,
    everywhere,
    of_kind,
    pods,
    rendered,
)


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


def test_other_pods_execute_runs_as_the_code_server_does():
    code, runs = (by_component("shards")[name]["spec"] for name in ("code", "runs"))
    (container,), (others,) = code["containers"], runs["containers"]

    assert others["command"] == ["python", "-m", "orchestration.runs", "--beat", "/tmp/beat"]
    for key in ("image", "env", "envFrom", "volumeMounts"):
        assert others[key] == container[key], key
    assert runs["volumes"] == code["volumes"]
    assert "runs" not in by_component("minimal")


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


@pytest.mark.parametrize("values", ["minimal", "shards"])
def test_the_number_of_shards_is_the_same_for_the_pods_and_for_dagster(values):
    (settings,) = of_kind(values, "ConfigMap")
    commands = [template["spec"]["containers"][0]["command"] for template in pods(values).values()]
    shards = {command[command.index("--shard") + 1] for command in commands if "--shard" in command}
    wanted = settings["data"]["PRESAGE_LIVE_SHARDS"]

    assert {shard for shard in shards if shard.endswith(f"/{wanted}")} == {
        f"{number}/{wanted}" for number in range(1, int(wanted) + 1)
    }


@pytest.mark.parametrize(("values", "feed"), [("shards", "live"), ("shards", "settlement"), ("kalshi", "live-kalshi")])
def test_a_feeds_command_is_one_that_the_feed_takes(values, feed, monkeypatch, capsys):
    (container,) = by_component(values)[feed]["spec"]["containers"]
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
