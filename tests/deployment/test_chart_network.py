"""Each process reaches what it reaches in Compose, and is reached by no others."""

import pytest
import yaml

from tests.deployment.chart import (
    LASTING,
    OURS,
    by_component,
    environment,
    everywhere,
    matching,
    of_kind,
    pods,
    rendered,
)
from tests.deployment.helm import ROOT


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
    database = {"shards": "10.1.2.3/32", "kalshi": "10.1.2.3/32", "monitoring": "presage-database"}[values]
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
    assert allowed.get("runs", allowed["code"]) == allowed["code"]


def test_kalshis_feed_reaches_the_database_and_the_exchange():
    assert reached("kalshi")["live-kalshi"] == {"database", "outside"}


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
