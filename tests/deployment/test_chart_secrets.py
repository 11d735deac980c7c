"""Each process knows the secrets that it needs, and no others; none is written down."""

import re
import stat

import pytest
import yaml

from tests.deployment.chart import by_component, component, containers, environment, everywhere, of_kind, pods, rendered

SECRETS_OF = {
    "migrate": {"owner", "pipeline", "api", "site"},
    "console": {"owner", "pipeline", "api", "site", "webhooks"},
    "code": {"pipeline", "webhooks"},
    "runs": {"pipeline", "webhooks"},
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


def test_the_key_of_kalshi_is_known_to_its_feed_and_to_dagsters_runs_and_nobody_else():
    knowing = {}
    for template in pods("kalshi").values():
        for container in template["spec"]["containers"]:
            given = environment("kalshi", container)
            mounted = [each for each in container["volumeMounts"] if each["name"] == "kalshi"]
            assert bool(mounted) == ("PRESAGE_KALSHI_KEY_ID" in given)
            if mounted:
                knowing[component(template)] = given
                (volume,) = [each for each in template["spec"]["volumes"] if each["name"] == "kalshi"]
                assert given["PRESAGE_KALSHI_KEY_ID"] == ("presage-kalshi", "PRESAGE_KALSHI_KEY_ID")
                file = f"{mounted[0]['mountPath']}/{volume['secret']['items'][0]['path']}"
                assert (file, mounted[0]["readOnly"]) == (given["PRESAGE_KALSHI_PRIVATE_KEY_FILE"], True)
                assert volume["secret"]["secretName"] == "presage-kalshi"
                assert not volume["secret"]["defaultMode"] & stat.S_IRWXO, "a key that is open to all is refused"

    assert set(knowing) == {"live-kalshi", "code"}
    (settings,) = of_kind("kalshi", "ConfigMap")
    assert settings["data"]["PRESAGE_EXCHANGES"] == "polymarket,kalshi"
    assert "PRESAGE_EXCHANGES" not in of_kind("minimal", "ConfigMap")[0]["data"]


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
