"""Rendering of pages as HTML or Markdown, whichever the request prefers."""

from __future__ import annotations

import hashlib
import json
import re
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context, select_autoescape
from starlette.responses import Response

from api.site import formatting
from api.site.accept import prefers_markdown
from api.site.visit import Page, Refusal

if TYPE_CHECKING:
    from jinja2.runtime import Context
    from starlette.requests import Request

    from api.site.site import Site

TEMPLATES = Path(__file__).parent / "templates"
# What a page's scripts may request: the markets whose prices it shows, and its chart.
SHOWN = re.compile(r' data-(?:market|market-page|symbol)="([^"]+)"')
UNSIGNED = 'data-pass=""'
QUERY_SAFE = "%/?:@!$&'()*+,;=~"  # characters that need no escaping in a query
NAVIGATION = (
    ("/markets", "Markets"),
    ("/wallets", "Wallets"),
    ("/status", "Status"),
    ("/guides", "Guides"),
    ("/reference", "API"),
    ("/pricing", "Pricing"),
)


class Renderer:
    """Renders pages from their templates."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._html = _environment("html")
        self._markdown = _environment("md")
        for environment in (self._html, self._markdown):
            environment.globals |= {"site": site, "navigation": NAVIGATION, "asset": site.assets.url}

    def respond(self, request: Request, page: Page) -> Response:
        """Return a page's response, or 304 if the client has it already."""
        markdown = wants_markdown(request)
        body = self.write(page, request, markdown=markdown).encode()
        tag = f'W/"{hashlib.sha1(body, usedforsecurity=False).hexdigest()}"'
        headers = {
            "Vary": "Accept",
            "Content-Type": f"text/{'markdown' if markdown else 'html'}; charset=utf-8",
            "Cache-Control": f"public, max-age={page.keep_s}" if page.keep_s else "no-cache",
            "Link": f'<{sibling(request)}>; rel="alternate"; type="text/markdown"',
            **page.headers,
        }
        if "no-store" in headers["Cache-Control"]:
            return Response(body, page.status, headers)
        headers["ETag"] = tag
        known = {each.strip() for each in request.headers.get("If-None-Match", "").split(",")}
        if page.status == 200 and tag in known:
            return Response(status_code=304, headers=headers)
        return Response(body, page.status, headers)

    def refuse(self, request: Request, refusal: Refusal) -> Response:
        """Return an error page."""
        page = Page(
            template="refusal",
            title=HTTPStatus(refusal.status).phrase,
            description=refusal.detail,
            data={"detail": refusal.detail, "hint": refusal.hint},
            status=refusal.status,
            headers={"Retry-After": "2"} if refusal.status == 503 else {},
        )
        return self.respond(request, page)

    def write(self, page: Page, request: Request, *, markdown: bool) -> str:
        """Return a page's text."""
        environment = self._markdown if markdown else self._html
        ending = "md.jinja" if markdown else "html"
        query = dict(request.query_params)
        context: dict[str, Any] = {
            **page.data,
            "page": page,
            "path": request.url.path,
            "query": query,
            "origin": origin(request, self._site.url),
            "sibling": sibling(request),
        }
        text = environment.get_template(f"{page.template}.{ending}").render(context)
        if markdown or not (shown := [match[1] for match in SHOWN.finditer(text)]):
            return text
        return text.replace(UNSIGNED, f'data-pass="{self._site.passes.write(shown)}"', 1)


def wants_markdown(request: Request) -> bool:
    """Return whether Markdown is requested, by the URL or by the Accept header."""
    return bool(request.scope.get("markdown")) or prefers_markdown(request.headers.get("Accept"))


def sibling(request: Request) -> str:
    """Return the URL of the same page as Markdown."""
    path = quote(request.url.path)  # headers are Latin-1
    query = f"?{quote(request.url.query, safe=QUERY_SAFE)}" if request.url.query else ""
    return f"{'/index' if path == '/' else path.removesuffix('/')}.md{query}"


def origin(request: Request, given: str = "") -> str:
    """Return the site's own URL without a trailing slash."""
    return (given or str(request.base_url)).rstrip("/")


def _environment(kind: str) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES / kind),
        autoescape=select_autoescape(("html",)),  # Markdown templates escape external text with `cell`
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= formatting.FILTERS
    environment.filters["json"] = lambda value: json.dumps(value, ensure_ascii=False)
    environment.globals["here"] = here
    return environment


@pass_context
def here(context: Context, **changes: Any) -> str:
    """Return the URL of this page with changed parameters; None removes one."""
    query = {**context["query"], **changes}
    kept = {name: value for name, value in query.items() if value not in (None, "")}
    return f"{context['path']}?{urlencode(kept)}" if kept else str(context["path"])
