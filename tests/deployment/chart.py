"""The Helm chart as Helm renders it for six sets of values: its resources, pods and containers."""

import re

import pytest
import yaml
from pydantic import SecretStr

from config.settings import Settings, variable
from tests.deployment.helm import CHART, resources
from tests.setting_kinds import holds

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
SECRET = {name for name, field in BY_NAME.items() if holds(field.annotation, SecretStr)}
SCHEMA = yaml.safe_load((CHART / "values.schema.json").read_text())
# Set by the chart or by the image; backups are the database's; Kalshi's key is a file of a Secret.
NOT_GIVEN = {
    f"PRESAGE_{name}"
    for name in ("DATA_DIR", "CACHE_DIR", "METERING_DIR", "NODE_MODULES", "DAGSTER_PORT", "ROLES", "HOST_NAME")
}
NOT_GIVEN |= {"PRESAGE_KALSHI_PRIVATE_KEY_FILE", "PRESAGE_ROLES", "PRESAGE_HOST_NAME"}

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


def matching(selector, specs):
    wanted = selector["matchLabels"].items()
    return {name for name, spec in specs.items() if wanted <= spec["template"]["metadata"]["labels"].items()}
