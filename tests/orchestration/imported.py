"""python -m tests.orchestration.imported: print as JSON what a run's process has imported when it begins."""

import json
import sys

NAMES = ("orchestration.assets.ingest", "dagster._grpc.impl", "dagster_postgres")


def tell(answers):
    answers.put([name in sys.modules for name in NAMES])


def main():
    import logging
    import threading

    from dagster._core.utils import FuturesAwareThreadPoolExecutor

    from orchestration import code_server

    code_server.preload()
    with FuturesAwareThreadPoolExecutor() as threads:
        server = code_server.CodeServer(threading.Event(), logging.getLogger("test"), threads)
        answers = server._mp_ctx.Queue()
        run = server._mp_ctx.Process(target=tell, args=(answers,))
        run.start()
        found = answers.get(timeout=120)
        run.join()
    print(json.dumps({"imported": found, "exit_code": run.exitcode}))


if __name__ == "__main__":
    main()
