"""The guides: the pages of `docs/` as HTML and Markdown, with links rewritten to the site."""

from __future__ import annotations

import re
from pathlib import Path
from posixpath import normpath
from typing import TYPE_CHECKING, Any, NamedTuple

from markdown_it import MarkdownIt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from markdown_it.token import Token

FOLDER = Path(__file__).parents[2] / "docs"
ORDER = ("start", "api", "concepts", "stream", "webhooks", "exports", "mcp", "signals", "coverage", "analysts", "site")
EXTERNAL = re.compile(r"[a-z][a-z0-9+.-]*:|/", re.IGNORECASE)
LINK = re.compile(r"(?<!!)\[(?P<text>[^\]\n]*)\]\((?P<to>[^)\s]+)\)")
NO_PROSE = ("#", "|", "```", "-", "!", ">", "1.")
CODE = re.compile(r"(```.*?```|`[^`\n]*`)", re.DOTALL)


class Guide(NamedTuple):
    """One page of the documentation."""

    name: str  # its path below docs/, without the ending
    title: str
    summary: str
    text: str

    @property
    def url(self) -> str:
        """Return its path on the site."""
        return f"/guides/{self.name}"


class Guides:
    """The pages of the documentation, read when the site starts."""

    def __init__(self, folder: Path | None = None) -> None:
        folder = folder or FOLDER
        found = [_guide(folder, path) for path in sorted(folder.rglob("*.md"))]
        ordered = sorted(found, key=lambda guide: (_sort_key(guide.name), guide.name))
        self.by_name = {guide.name: guide for guide in ordered}

    @property
    def listed(self) -> list[Guide]:
        """List the user guides; decisions have a contents page of their own."""
        return [guide for guide in self.by_name.values() if "/" not in guide.name or guide.name.endswith("README")]

    def markdown(self, guide: Guide, ending: str = ".md") -> str:
        """Return a guide's Markdown with links that resolve on this site."""
        parts = CODE.split(guide.text)
        return "".join(
            part if at % 2 else LINK.sub(lambda link: self._link(guide, link, ending), part)
            for at, part in enumerate(parts)
        )

    def html(self, guide: Guide) -> str:
        """Return a guide as HTML."""
        return render_markdown(self.markdown(guide, ""))

    def _link(self, guide: Guide, link: re.Match[str], ending: str) -> str:
        to, mark, place = link["to"].partition("#")
        if not to or EXTERNAL.match(to):
            return link[0]
        folder = guide.name.rpartition("/")[0]
        name = normpath(f"{folder}/{to}" if folder else to)
        if name.removesuffix(".md") in self.by_name:
            return f"[{link['text']}](/guides/{name.removesuffix('.md')}{ending}{mark}{place})"
        return link["text"]  # a file of the repository that the site does not serve


def render_markdown(text: str) -> str:
    """Render Markdown as HTML: headings have ids, tables can be scrolled, raw HTML is escaped."""
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    tokens = parser.parse(text)
    ids: set[str] = set()
    for at, token in enumerate(tokens):
        if token.type == "heading_open":
            token.attrSet("id", _unique(slug(tokens[at + 1].content), ids))
    for token in _flat(tokens):
        if token.type == "link_open" and str(token.attrGet("href") or "").startswith("http"):
            token.attrSet("rel", "noopener")
        elif token.type in {"th_open", "td_open"} and "right" in str(token.attrs.pop("style", "")):
            token.attrSet("class", "r")  # the content security policy forbids inline styles
    html: str = parser.renderer.render(tokens, parser.options, {})
    # Scrollable elements are focusable by keyboard.
    html = html.replace("<pre>", '<pre tabindex="0">')
    return html.replace("<table>", '<div class="wide" tabindex="0"><table>').replace("</table>", "</table></div>")


def slug(heading: str) -> str:
    """Return a heading's anchor, by GitHub's convention."""
    bare = re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower())
    return bare.strip().replace(" ", "-")


def _unique(name: str, taken: set[str]) -> str:
    at, found = 0, name
    while found in taken:
        at += 1
        found = f"{name}-{at}"
    taken.add(found)
    return found


def _flat(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _flat(token.children or [])


def _guide(folder: Path, path: Path) -> Guide:
    text = path.read_text()
    name = path.relative_to(folder).as_posix().removesuffix(".md")
    lines = text.splitlines()
    title = next((line.removeprefix("# ") for line in lines if line.startswith("# ")), name)
    rest = text.partition(f"# {title}")[2].strip()
    first = next((part for part in rest.split("\n\n") if part and not part.startswith(NO_PROSE)), "")
    summary = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(first.split()))
    summary = summary.replace("`", "").replace("**", "")
    return Guide(name, title.replace("`", ""), _shorten(summary), text)


def _shorten(text: str, max_length: int = 200) -> str:
    sentence = re.split(r"(?<=\w\.)\s", text, maxsplit=1)[0].removesuffix(":")
    return sentence if len(sentence) <= max_length else sentence[: max_length - 1].rsplit(" ", 1)[0] + "…"


def _sort_key(name: str) -> Any:
    top = name.partition("/")[0]
    return (1 if "/" in name else 0, ORDER.index(top) if top in ORDER else len(ORDER), top)
