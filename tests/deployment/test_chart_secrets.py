"""Each process knows the secrets that it needs, and no others; none is written down."""

import re

import pytest
import yaml

from tests.deployment.chart import by_component, component, containers, environment, everywhere, of_kind, pods, rendered

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
