"""A row of the endpoint table: the single definition of an endpoint."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from api.schemas.requests import Parameters

if TYPE_CHECKING:
    from collections.abc import Callable

    from msgspec import Struct

    from api.service import Service

KeyIn = Literal["header", "query", "either", "debug", "none"]
JSON = "application/json"


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """An endpoint, as read by routing, validation, metering and the OpenAPI document."""

    name: str  # the operationId, which generated clients use
    path: str
    resource: Callable[[Endpoint, Service], Any]  # a class of base.resource
    answers: Any  # a type of api.schemas.records
    summary: str
    tag: str
    description: str = ""
    method: Literal["GET", "POST", "PATCH", "DELETE"] = "GET"
    parameters: type[Parameters] = Parameters
    body: type[Struct] | None = None
    query: Callable[..., Any] | None = None  # of sql.queries
    key: KeyIn = "header"
    credits: int = 1
    cost: Callable[[Any], int] | None = None  # credits, where they depend on the parameters
    cost_rule: str = ""  # the same as text
    cache_s: float = 0
    status: int = 200
    media: str = JSON
    errors: tuple[str, ...] = ()  # codes beyond those of every endpoint
    missing: str = ""  # the detail of a 404
    hint: str = ""  # and its hint
    headers: dict[str, str] = field(default_factory=dict)  # of its own responses, with their descriptions
    example: Any = None  # of a response, where the fields' own examples do not fit together
    path_descriptions: dict[str, str] = field(
        default_factory=dict
    )  # descriptions of path parameters, where they are not a market

    def price(self, given: Parameters) -> int:
        """Return the credits that a request with these parameters costs."""
        return self.cost(given) if self.cost else self.credits

    @property
    def path_parameters(self) -> list[str]:
        """The names of the path parameters."""
        return [part[1:-1] for part in self.path.split("/") if part.startswith("{")]
