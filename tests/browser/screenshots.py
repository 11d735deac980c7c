"""python -m tests.browser.screenshots FOLDER: take the README's pictures, of a demo of its own that ends afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from config.settings import DAGSTER_USER
from tests.browser.conftest import CHROMIUM

ROOT = Path(__file__).parents[2]
MAX_START_S, MAX_PAST_S, RUN_S = 240, 420, 900
WIDTH, HEIGHT, QUALITY = 1280, 800, 60


def main(folder: Path) -> int:
    """Start a demo, wait for its past, take the pictures, end it."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="presage-screenshots-") as kept:
        Path(kept).chmod(0o755)  # as root the database runs as another user
        file = Path(kept) / "figures.json"
        demo = subprocess.Popen(
            [str(Path(sys.executable).with_name("presage")), "demo", "--for", str(RUN_S), "--json", str(file)],
            cwd=ROOT,
            env={**os.environ, "PRESAGE_DATA_DIR": f"{kept}/data"},
            stdout=subprocess.DEVNULL,
        )
        try:
            urls = wait_for(demo, file, MAX_START_S, lambda found: found["time_to_first_price_s"])["urls"]
            wait_for(demo, file, MAX_PAST_S, lambda found: (found["past"] or {}).get("signals", 0) >= 50)
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
                password = Path(kept, "data", "dagster.password").read_text()
                page = browser.new_page(
                    viewport={"width": WIDTH, "height": HEIGHT},
                    http_credentials={"username": DAGSTER_USER, "password": password, "origin": urls["dagster"]},
                )
                take_market(page, urls["site"], folder / "market.jpg")
                take_asset_graph(page, urls["dagster"], folder / "assets.jpg")
                browser.close()
        finally:
            demo.terminate()
            demo.wait()
    return 0


def wait_for(demo: subprocess.Popen[bytes], file: Path, seconds: float, condition) -> dict:
    """Return the demo's figures once they meet a condition; TimeoutError if they do not in time."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and demo.poll() is None:
        if file.exists() and condition(found := json.loads(file.read_text())):
            return found
        time.sleep(1)
    raise TimeoutError(f"the demo ended, or did not come so far within {seconds} s")


def take_market(page: Page, site: str, file: Path) -> None:
    """Take the page of the market with the largest volume, its chart in hours."""
    page.goto(f"{site}/markets?sort=volume")
    page.locator("main table a").first.click()
    page.wait_for_selector("#chart[data-state=drawn]")
    page.get_by_role("button", name="1 h", exact=True).click()
    page.wait_for_selector("#chart[data-state=drawn]")
    page.wait_for_timeout(1500)  # until the chart's animation has ended
    page.screenshot(path=file, type="jpeg", quality=QUALITY)


def take_asset_graph(page: Page, dagster: str, file: Path) -> None:
    """Take Dagster's graph of all assets, groups opened."""
    page.goto(f"{dagster}/asset-groups?expanded=")
    page.wait_for_selector("svg foreignObject", timeout=60_000)
    page.wait_for_timeout(3000)  # until the graph is laid out
    page.screenshot(path=file, type="jpeg", quality=QUALITY)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
