"""The files that pages load: ours, and those that npm has brought. All lie under an address that changes with them."""

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
}
FROM_NPM = {"lightweight-charts.js": "lightweight-charts/dist/lightweight-charts.standalone.production.js"}
FOREVER = "public, max-age=31536000, immutable"


class File(NamedTuple):
    """A file as it is sent."""

    kind: str
    body: bytes
    packed: bytes


class Assets:
    """The files, held in memory."""

    def __init__(self, node_modules: Path) -> None:
        found = {path.name: path for path in sorted(FOLDER.iterdir()) if path.suffix in KINDS}
        for name, where in FROM_NPM.items():
            if (path := node_modules / where).is_file():
                found[name] = path
            else:
                log.warning("%s is missing: charts are not drawn until `npm install` has run", path)
        self._files = {name: _file(path) for name, path in found.items()}
        together = hashlib.sha256(b"".join(file.body for file in self._files.values()))
        self.version = together.hexdigest()[:12]

    def url(self, name: str) -> str:
        """Give the address of a file; imports from one file to another stay within the version."""
        return f"/static/{self.version}/{name}"

    async def serve(self, request: Request) -> Response:
        """Answer with a file."""
        file = self._files.get(request.path_params["name"])
        if file is None:
            return Response("There is no such file\n", 404, media_type="text/plain")
        headers = {"Vary": "Accept-Encoding", "Content-Type": file.kind, "Cache-Control": "no-cache"}
        if request.path_params["version"] == self.version:
            headers["Cache-Control"] = FOREVER
        if "gzip" in request.headers.get("Accept-Encoding", ""):
            return Response(file.packed, headers=headers | {"Content-Encoding": "gzip"})
        return Response(file.body, headers=headers)


def _file(path: Path) -> File:
    body = path.read_bytes()
    return File(KINDS[path.suffix], body, gzip.compress(body, mtime=0))
