"""python -m tests.orchestration.ingest.skewed SECONDS …: a live run on a host whose clock is so many seconds ahead."""

import sys
import time

if __name__ == "__main__":
    right, ahead = time.time, float(sys.argv.pop(1))
    time.time = lambda: right() + ahead  # before anything else takes it

    from orchestration.ingest.__main__ import main

    sys.exit(main())
