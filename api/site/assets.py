"""Static files of the pages: our own and those from npm, under a URL that contains a hash of their contents."""

from __future__ import annotations

import gzip
import hashlib
import logging
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from starlette.responses import Response

if TYPE_CHECKING:
    from starlette.requests import Request

log = logging.getLogger(__name__)

FOLDER = Path(__file__).parent / "static"
KINDS = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
# With the SHA-256 of the versions in package.json: what a registry delivers instead runs in no visitor's browser.
FROM_NPM = {
    "lightweight-charts.js": (
        "lightweight-charts/dist/lightweight-charts.standalone.production.js",
        "e21cc5caa0226ef30bd8549c50b9ef926615f2a4ee6b4e486353477a55f598cf",
    ),
    "mermaid.js": (
        "mermaid/dist/mermaid.min.js",
        "336df803d87a38b70a01e736e666c8f7601d2ce42f5e47c8fafe5d721074b9a3",
    ),
}
IMMUTABLE = "public, max-age=31536000, immutable"


class Asset(NamedTuple):
    """A static file: media type, body and gzipped body."""

    kind: str
    body: bytes
    gzipped: bytes


class Assets:
    """The static files, held in memory."""

    def __init__(self, node_modules: Path) -> None:
        self._files = {path.name: _asset(path) for path in sorted(FOLDER.iterdir()) if path.suffix in KINDS}
        for name, (where, digest) in FROM_NPM.items():
            if not (path := node_modules / where).is_file():
                log.warning("%s is missing: charts or diagrams are not drawn until `npm install` has run", path)
                continue
            file = _asset(path)
            if hashlib.sha256(file.body).hexdigest() == digest:
                self._files[name] = file
            else:
                log.error("%s is not the file of the version in package.json: it is not served", path)
        together = hashlib.sha256(b"".join(file.body for file in self._files.values()))
        self.version = together.hexdigest()[:12]

    def url(self, name: str) -> str:
        """Return a file's URL; imports from one file to another stay within the version."""
        return f"/static/{self.version}/{name}"

    async def serve(self, request: Request) -> Response:
        """Serve a file; gzipped if the client accepts it."""
        file = self._files.get(request.path_params["name"])
        if file is None:
            return Response("There is no such file\n", 404, media_type="text/plain")
        headers = {"Vary": "Accept-Encoding", "Content-Type": file.kind, "Cache-Control": "no-cache"}
        if request.path_params["version"] == self.version:
            headers["Cache-Control"] = IMMUTABLE
        if "gzip" in request.headers.get("Accept-Encoding", ""):
            return Response(file.gzipped, headers=headers | {"Content-Encoding": "gzip"})
        return Response(file.body, headers=headers)


def _asset(path: Path) -> Asset:
    body = path.read_bytes()
    return Asset(KINDS[path.suffix], body, gzip.compress(body, mtime=0))
