"""How exchanges are opened by the settings."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[4]


def test_a_feed_of_polymarket_loads_nothing_of_kalshis():
    program = (
        "import sys; from config.exchanges import POLYMARKET; from config.settings import Settings\n"
        "import orchestration.ingest.__main__; from orchestration.ingest.exchanges.opening import client_of\n"
        "client_of(POLYMARKET, Settings(_env_file=None))\n"
        "print([name for name in sys.modules if name == 'cryptography' or name.startswith('upstream.kalshi')])"
    )

    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
