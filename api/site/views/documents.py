"""Document pages: guides, API reference and pricing; and their text versions for agents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import PlainTextResponse

from api.site.guides import render_markdown
from api.site.middleware import content_security_policy
from api.site.rendering import NAVIGATION, origin
from api.site.visit import Page, Refusal

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from api.site.site import Site
    from api.site.visit import Visit

KEEP_S = 60
DIAGRAM = 'class="language-mermaid"'  # of a code block, which `diagrams.js` draws in the browser
ABOUT = {
    "/markets": "every market with its live price; search by `?q=`, rank by `?sort=`",
    "/wallets": "leading wallets by volume and profit; one wallet's profit and positions at `/wallets/0x….md`",
    "/status": "data freshness, coverage and gaps",
    "/guides": "how to use and run it",
    "/reference": "every operation of the API",
    "/pricing": "tiers, and what each request costs",
    "/register": "how to get a key",
}
SUMMARY = (
    "> A self-hosted data service for prediction markets: live prices, order books, trades, candles, signals and "
    "wallets over REST, a WebSocket stream, webhooks and MCP."
)
PAGES = "Every page is available as Markdown with `Accept: text/markdown`, or with `.md` appended to its URL."


async def guides(visit: Visit) -> Page:
    """List the guides."""
    return Page(
        template="guides",
        title="Guides",
        description="How to use Presage, and how to run it.",
        data={"guides": visit.site.guides.listed},
        keep_s=KEEP_S,
    )


async def guide(visit: Visit) -> Page:
    """Show one guide."""
    found = visit.site.guides.by_name.get(visit.request.path_params["name"])
    if found is None:
        raise Refusal(404, "There is no such guide", "All guides: /guides")
    html = visit.site.guides.html(found)
    has_diagram = DIAGRAM in html
    return Page(
        template="document",
        title=found.title,
        description=found.summary,
        data={
            "html": html,
            "markdown": visit.site.guides.markdown(found),
            "links": [(each.url, each.title) for each in visit.site.guides.listed],
            "up": ("/guides", "Guides"),
            "has_diagram": has_diagram,
        },
        keep_s=KEEP_S,
        # Mermaid styles what it draws with <style> elements and attributes.
        headers={"Content-Security-Policy": content_security_policy(visit.site.api_url, inline_styles=True)}
        if has_diagram
        else {},
    )


async def reference(visit: Visit) -> Page:
    """List the operations of the API."""
    return Page(
        template="reference",
        title="API reference",
        description="Every operation of the API, with its parameters, responses and cost.",
        data={
            "groups": visit.site.reference.groups,
            "introduction": visit.site.reference.document["info"]["description"],
            "introduction_html": render_markdown(visit.site.reference.document["info"]["description"]),
        },
        keep_s=KEEP_S,
    )


async def operation(visit: Visit) -> Page:
    """Show one operation of the API."""
    found = visit.site.reference.operations.get(visit.request.path_params["name"])
    if found is None:
        raise Refusal(404, "There is no such operation", "All operations: /reference")
    text = visit.site.reference.markdown(found, visit.site.api_url)
    beside = next(group for group in visit.site.reference.groups if group[0] == found.tag)
    return Page(
        template="document",
        title=f"{found.summary}: {found.method} {found.path}",
        description=f"{found.method} {found.path}: {found.summary}.",
        data={
            "html": render_markdown(text),
            "markdown": text,
            "links": [(each.url, each.summary) for each in beside[2]],
            "up": ("/reference", "API reference"),
            "has_diagram": False,
        },
        keep_s=KEEP_S,
    )


async def pricing(visit: Visit) -> Page:
    """Show the tiers and the cost of requests."""
    costs: dict[str, list[str]] = {}
    for each in visit.site.reference.operations.values():
        if each.path.startswith("/v1/"):
            costs.setdefault(each.credits, []).append(f"{each.method} {each.path}")
    return Page(
        template="pricing",
        title="Pricing",
        description="What each tier allows, and how many credits a request costs.",
        data={"tiers": visit.site.tiers, "costs": sorted(costs.items(), key=lambda item: (len(item[0]), item[0]))},
        keep_s=KEEP_S,
    )


def agents(site: Site, request: Request) -> Response:
    """Serve llms.txt: the list of pages, guides and operations."""
    at = origin(request, site.url)
    lines = [
        "# Presage",
        "",
        SUMMARY,
        "",
        f"The API is at {site.api_url} and requires a key in the header `X-API-Key` (see {at}/register.md). {PAGES}",
        "",
        f"MCP without a key: {at}/api/mcp. With a key and all tools: {at}/sse?key=KEY.",
        *(["", site.notice] if site.notice else []),
        "",
        "## Pages",
        "",
        *(f"- [{title}]({at}{url}.md): {ABOUT[url]}" for url, title in (*NAVIGATION, ("/register", "Register"))),
        "",
        "## Guides",
        "",
        *(f"- [{each.title}]({at}{each.url}.md): {each.summary}" for each in site.guides.listed),
        "",
        "## API",
        "",
        f"- [OpenAPI 3.1]({site.api_url}/openapi.json): the complete machine-readable specification",
        *(
            f"- [{each.method} {each.path}]({at}{each.url}.md): {each.summary}"
            for each in site.reference.operations.values()
            if each.tag != "Debug"
        ),
        "",
        "## Optional",
        "",
        f"- [All guides and the whole reference in one file]({at}/llms-full.txt)",
        "",
    ]
    return _text("\n".join(lines))


def all_for_agents(site: Site, request: Request) -> Response:
    """Serve llms-full.txt: all guides and the whole reference."""
    at = origin(request, site.url)
    parts = [f"# Presage\n\nAll guides and the reference of {at}; see {at}/llms.txt for a list.\n"]
    parts += [f"Source: {at}{each.url}\n\n{site.guides.markdown(each)}" for each in site.guides.by_name.values()]
    parts += [
        f"Source: {at}{each.url}\n\n{site.reference.markdown(each, site.api_url)}"
        for each in site.reference.operations.values()
    ]
    return _text("\n---\n\n".join(parts))


def robots(site: Site, request: Request) -> Response:
    """Serve robots.txt: crawlers may read pages, but not endless feeds and queries."""
    at = origin(request, site.url)
    return _text(f"User-agent: *\nDisallow: /udf/\nDisallow: /live\nDisallow: /*?\n\nSitemap: {at}/sitemap.xml\n")


def sitemap(site: Site, request: Request) -> Response:
    """Serve the sitemap of permanent pages."""
    at = origin(request, site.url)
    paths = ["/", "/register", *(url for url, _ in NAVIGATION)]
    paths += [each.url for each in site.guides.by_name.values()]
    paths += [each.url for each in site.reference.operations.values()]
    urls = "".join(f"<url><loc>{at}{path}</loc></url>" for path in paths)
    body = f'<?xml version="1.0" encoding="UTF-8"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{urls}'
    return _text(body + "</urlset>", "application/xml")


def _text(body: str, media: str = "text/plain") -> Response:
    return PlainTextResponse(body, media_type=media, headers={"Cache-Control": f"public, max-age={KEEP_S}"})
