"""The database logins of the settings: created where they are given, with the rights of their role."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from config.settings import Settings


def given(settings: Settings) -> dict[str, str]:
    """Return the URLs of the logins that the settings name, by role."""
    from sql.roles.rights import API, PIPELINE, SITE

    named = {
        PIPELINE: settings.pipeline_database_url,
        API: settings.api_database_url,
        SITE: settings.site_database_url,
    }
    return {role: url.get_secret_value() for role, url in named.items() if url is not None}


def create(url: str, logins: Mapping[str, str], dagster_url: str | None = None) -> None:
    """Create logins, as the owner of the database, and give Dagster's database to the pipeline."""
    from sql.database import connect
    from sql.roles import logins as roles
    from sql.roles.rights import PIPELINE

    if logins:
        with connect(url, autocommit=True, name="presage migrate") as conn:
            roles.ensure(conn, logins)
    if dagster_url is not None and PIPELINE in logins:
        roles.give_dagster(dagster_url)
