"""One line of the endpoint table: everything that is to be known of an endpoint, said once."""

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
    """Routing, checking, metering, the OpenAPI document and all that is built from it read this."""

    name: str  # of the operation, as clients generated from the document call it
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
    cost_rule: str = ""  # the same in words
    cache_s: float = 0
    status: int = 200
    media: str = JSON
    errors: tuple[str, ...] = ()  # codes beyond those every endpoint may answer
    missing: str = ""  # what a 404 says
    hint: str = ""  # and what it suggests
    headers: dict[str, str] = field(default_factory=dict)  # of its own answers, with what they say
    example: Any = None  # of an answer, where its fields do not tell how they belong together
    explained: dict[str, str] = field(default_factory=dict)  # what stands in braces, where it is not a market

    def price(self, given: Parameters) -> int:
        """Give the credits that this request costs."""
        return self.cost(given) if self.cost else self.credits

    @property
    def path_parameters(self) -> list[str]:
        """Name what stands in braces."""
        return [part[1:-1] for part in self.path.split("/") if part.startswith("{")]
