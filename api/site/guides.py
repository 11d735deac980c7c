"""The guides: the pages of `docs/`, as HTML and as Markdown, their links made the site's."""

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
FIRST = ("start", "api", "concepts", "stream", "webhooks", "exports", "mcp", "signals", "coverage", "analysts", "site")
OUTSIDE = re.compile(r"[a-z][a-z0-9+.-]*:|/", re.IGNORECASE)
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
        """Give its address."""
        return f"/guides/{self.name}"


class Guides:
    """The pages of the documentation, read when the site starts."""

    def __init__(self, folder: Path | None = None) -> None:
        folder = folder or FOLDER
        found = [_guide(folder, path) for path in sorted(folder.rglob("*.md"))]
        ordered = sorted(found, key=lambda guide: (_place(guide.name), guide.name))
        self.by_name = {guide.name: guide for guide in ordered}

    @property
    def listed(self) -> list[Guide]:
        """Those that are for users; decisions have a contents page of their own."""
        return [guide for guide in self.by_name.values() if "/" not in guide.name or guide.name.endswith("README")]

    def markdown(self, guide: Guide, ending: str = ".md") -> str:
        """Give a guide's Markdown with links that lead somewhere on this site."""
        parts = CODE.split(guide.text)
        return "".join(
            part if at % 2 else LINK.sub(lambda link: self._link(guide, link, ending), part)
            for at, part in enumerate(parts)
        )

    def html(self, guide: Guide) -> str:
        """Give a guide as HTML."""
        return rendered(self.markdown(guide, ""))

    def _link(self, guide: Guide, link: re.Match[str], ending: str) -> str:
        to, mark, place = link["to"].partition("#")
        if not to or OUTSIDE.match(to):
            return link[0]
        folder = guide.name.rpartition("/")[0]
        name = normpath(f"{folder}/{to}" if folder else to)
        if name.removesuffix(".md") in self.by_name:
            return f"[{link['text']}](/guides/{name.removesuffix('.md')}{ending}{mark}{place})"
        return link["text"]  # something of the repository that the site does not show


def rendered(text: str) -> str:
    """Give Markdown as HTML: headings can be linked to, tables can be scrolled, raw HTML is text."""
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
            token.attrSet("class", "r")  # a style within the page is not allowed
    html: str = parser.renderer.render(tokens, parser.options, {})
    # What may have to be scrolled can be reached by the keyboard.
    html = html.replace("<pre>", '<pre tabindex="0">')
    return html.replace("<table>", '<div class="wide" tabindex="0"><table>').replace("</table>", "</table></div>")


def slug(heading: str) -> str:
    """Give a heading's place on its page, as is usual for Markdown."""
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
    return Guide(name, title.replace("`", ""), _cut(summary), text)


def _cut(text: str, most: int = 200) -> str:
    sentence = re.split(r"(?<=\w\.)\s", text, maxsplit=1)[0].removesuffix(":")
    return sentence if len(sentence) <= most else sentence[: most - 1].rsplit(" ", 1)[0] + "…"


def _place(name: str) -> Any:
    top = name.partition("/")[0]
    return (1 if "/" in name else 0, FIRST.index(top) if top in FIRST else len(FIRST), top)
