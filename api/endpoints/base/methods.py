"""Dispatches a path that several endpoints share by HTTP method."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from api.endpoints.base.resource import Resource

ALSO_SERVES = {"GET": ("HEAD",)}


class MethodDispatcher:
    """One resource for the router; each request goes to the endpoint of its method."""

    def __init__(self, resources: Sequence[Resource]) -> None:
        for resource in resources:
            method = resource.endpoint.method
            for name in (method, *ALSO_SERVES.get(method, ())):
                responder = f"on_{name.lower()}"
                setattr(self, responder, getattr(resource, responder))


def merge_methods(resources: Sequence[Resource]) -> Any:
    """Return one resource that serves all endpoints of a path."""
    return resources[0] if len(resources) == 1 else MethodDispatcher(resources)
