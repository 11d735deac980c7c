"""Execute Dagster's runs on this host: `python -m orchestration.runs`.

A module of its own, as each run's process would import this one again if it were not called `__main__`.
"""

from orchestration.runs.host import main

if __name__ == "__main__":
    main()
