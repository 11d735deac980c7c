"""Each resource is valid, and each container bounded, without rights, and probed."""

import pytest

from tests.deployment.chart import (
    LASTING,
    OF_OPERATORS,
    VALUES,
    VERSIONS,
    by_component,
    containers,
    everywhere,
    matching,
    nulls,
    of_kind,
    pods,
    rendered,
)
from tests.deployment.helm import CHART, Schemas, helm


@pytest.fixture(scope="module", params=VERSIONS)
def schemas(request):
    return Schemas(request.param)


def test_there_are_six_sets_of_values():
    assert VALUES == ["cloudnativepg", "hardened", "kalshi", "minimal", "monitoring", "shards"]


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
        kinds = {"name", "emptyDir", "persistentVolumeClaim", *(["secret"] if values == "kalshi" else [])}
        assert {kind for volume in spec["volumes"] for kind in volume} <= kinds
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
        # Nobody connects to the daemon and to what executes runs; the console has nothing to end for.
        asked = {
            "daemon": {"startupProbe", "livenessProbe"},
            "runs": {"startupProbe", "livenessProbe"},
            "console": {"readinessProbe"},
        }.get(container["name"], {"startupProbe", "livenessProbe", "readinessProbe"})
        assert probed == asked, each["metadata"]["name"]


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


@everywhere
def test_exports_have_a_volume_unless_they_are_in_a_bucket(values):
    in_bucket = values == "shards"
    claims = [each for each in of_kind(values, "PersistentVolumeClaim") if each["metadata"]["name"].endswith("exports")]
    mounting = {
        name
        for name, template in by_component(values).items()
        if any("persistentVolumeClaim" in volume for volume in template["spec"]["volumes"])
    }

    assert len(claims) == (not in_bucket)
    assert ("code" in mounting) == (not in_bucket)
