"""Runs queries in chdb, ClickHouse as a library: `[[name, query]…]` from stdin; one line of JSON for each result."""

import json
import sys

import chdb

for name, query in json.load(sys.stdin):
    value = json.loads(str(chdb.query(query, "JSONCompact")))["data"]
    print(json.dumps({"name": name, "value": value}), flush=True)
