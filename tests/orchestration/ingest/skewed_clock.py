"""python -m tests.orchestration.ingest.skewed_clock SECONDS …: a live run on a host whose clock is SECONDS ahead."""

import sys
import time

if __name__ == "__main__":
    right, ahead = time.time, float(sys.argv.pop(1))
    time.time = lambda: right() + ahead  # before anything imports it

    from orchestration.ingest.__main__ import main

    sys.exit(main())
