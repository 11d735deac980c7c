"""Scripts for visitors' browsers are exactly those that were reviewed."""

import asyncio
from pathlib import Path

from starlette.requests import Request

from api.site.assets import FROM_NPM, Assets

NODE_MODULES = Path(__file__).parents[3] / "node_modules"


def status(assets, name):
    request = Request({"type": "http", "headers": [], "path_params": {"version": assets.version, "name": name}})
    return asyncio.run(assets.serve(request)).status_code


def test_a_script_from_npm_that_is_not_the_pinned_one_is_not_served(tmp_path, caplog):
    for where, _ in FROM_NPM.values():
        (tmp_path / where).parent.mkdir(parents=True)
        (tmp_path / where).write_bytes((NODE_MODULES / where).read_bytes())
    whole = Assets(tmp_path)
    with (tmp_path / FROM_NPM["mermaid.js"][0]).open("ab") as file:
        file.write(b"\n")

    altered = Assets(tmp_path)

    assert [status(whole, name) for name in FROM_NPM] == [200, 200]
    assert {name: status(altered, name) for name in FROM_NPM} == {"lightweight-charts.js": 200, "mermaid.js": 404}
    assert "mermaid.min.js is not the file of the version in package.json" in caplog.text
