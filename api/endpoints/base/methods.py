"""A path that several endpoints share, each by its own method."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from api.endpoints.base.resource import Resource

ALSO = {"GET": ("HEAD",)}


class Methods:
    """To the router one resource; each request goes to the endpoint of its method."""

    def __init__(self, resources: Sequence[Resource]) -> None:
        for resource in resources:
            method = resource.endpoint.method
            for name in (method, *ALSO.get(method, ())):
                responder = f"on_{name.lower()}"
                setattr(self, responder, getattr(resource, responder))


def together(resources: Sequence[Resource]) -> Any:
    """Give what answers at a path."""
    return resources[0] if len(resources) == 1 else Methods(resources)
