"""An embedded PostgreSQL with TimescaleDB, for machines that have neither one nor Docker."""

from sql.embedded.cluster import Cluster
from sql.embedded.errors import EmbeddedError
from sql.embedded.installation import Installation, install, installed

__all__ = ["Cluster", "EmbeddedError", "Installation", "install", "installed"]
