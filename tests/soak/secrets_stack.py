"""`presage up` with known secrets on a server that archives; and its use, rightly and wrongly, until it is killed."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import re
import secrets
import signal
import socket
import ssl
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from aiosmtpd.smtp import AuthResult
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from api.metering.keys import PREFIX_CHARS
from cli.stack.readiness import answers
from config import webhook_keys
from tests.api.metering.mailbox import AnyPort, Mailbox
from tests.archived import DATABASE, Archived
from tests.patience import PATIENCE_S, until
from tests.ports import free_port

if TYPE_CHECKING:
    import psycopg

    from cli.stack.ports import Ports
    from tests.soak.searching import Search

ROOT = Path(__file__).parents[2]
STARTED_S = 5 * PATIENCE_S  # for the whole stack, or a command beside it
DEAD = "127.0.0.1:9"
# Settings that hold a secret; `Stack.environment` gives each a value of its own.
SECRET_SETTINGS = {
    *("database_url", "database_read_url", "redis_url", "chain_rpc_urls"),
    *("pipeline_database_url", "api_database_url", "site_database_url"),
    *("backup_passphrase", "backup_s3_key", "backup_s3_secret", "smtp_url", "site_token", "debug_token"),
    *("alert_webhook_url", "alert_apprise_urls", "webhook_encryption_keys", "dagster_password", "kalshi_key_id"),
    *("lake_s3_key", "lake_s3_secret"),
}


def new() -> str:
    """Return a secret with characters that URLs encode."""
    return f"{secrets.token_hex(16)}/+{secrets.token_hex(4)}"


class Stack:
    """`presage up` on a database server that archives, against a simulated exchange, with secrets of its own."""

    def __init__(self, folder: Path, made: Archived, ports: Ports, search: Search) -> None:
        self.folder, self.made, self.ports, self.search = folder, made, ports, search
        self.data_dir = folder / "up"
        self.data_dir.mkdir()
        self.key, self.exchange = "", free_port()

    @contextlib.contextmanager
    def running(self, mail_port: int, receiver: str, certificate: Path):
        self.given = self.environment(mail_port, receiver, certificate)
        with (self.folder / "said/up").open("wb") as output:
            simulated = ["--port", str(self.exchange), "--markets", "20", "--rate", "20"]
            exchange = subprocess.Popen(
                [sys.executable, "-m", "upstream.sandbox", *simulated], cwd=ROOT, stdout=subprocess.DEVNULL
            )
            up = subprocess.Popen(
                [sys.executable, "-m", "cli.main", "up", "--port-base", str(self.ports.api), "--backfill", "0"],
                cwd=ROOT,
                env={**os.environ, **self.given},
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            try:
                until(lambda: up.poll() is not None or self.is_up(), within_s=STARTED_S)
                assert up.poll() is None, (self.folder / "said/up").read_text()
                yield
                up.terminate()
                assert up.wait(STARTED_S) == 0
            finally:
                for process in (up, exchange):
                    process.kill()
                    process.wait()

    def environment(self, mail_port: int, receiver: str, certificate: Path) -> dict[str, str]:
        """Return the settings."""
        secret, exchange = self.search.secret, f"127.0.0.1:{self.exchange}"
        password, reader = (self.search.secrets[name] for name in ("database password", "reader's password"))
        server = f"127.0.0.1:{self.made.cluster.port}/{DATABASE}"
        self.mail_password = secret("smtp_url", new())
        self.webhook_key = secret("webhook_encryption_keys", webhook_keys.new())
        self.debug_token = secret("debug_token", secrets.token_hex(24))
        self.dagster_password = secret("dagster_password", secrets.token_hex(16))
        nodes = [secret(f"chain_rpc_urls {n}", secrets.token_hex(16)) for n in range(2)]
        return {
            "PRESAGE_DATA_DIR": str(self.data_dir),
            "PRESAGE_METERING_DIR": str(self.data_dir / "metering"),
            "DATABASE_URL": f"postgresql://presage:{quote(password, safe='')}@{server}",
            "DATABASE_READ_URL": f"postgresql://reader:{quote(reader, safe='')}@{server}",
            **{
                f"PRESAGE_{role.upper()}_DATABASE_URL": f"postgresql://{role}_login:{password}@{server}"
                for role in ("pipeline", "api", "site")
                for password in [quote(secret(f"{role}_database_url", new()), safe="")]
            },
            "REDIS_URL": f"redis://:{secret('redis_url', secrets.token_hex(16))}@{DEAD}/0",
            "PRESAGE_SOURCE": "simulated",
            "PRESAGE_GAMMA_URL": f"http://{exchange}/gamma",
            "PRESAGE_CLOB_URL": f"http://{exchange}/clob",
            "PRESAGE_DATA_API_URL": f"http://{exchange}/data",
            "PRESAGE_CLOB_SOCKET_URL": f"ws://{exchange}/ws/market",
            "PRESAGE_CHAIN_RPC_URLS": f"http://{exchange}/rpc?key={nodes[0]}, http://{DEAD}/v2/{nodes[1]}",
            "PRESAGE_KALSHI_KEY_ID": secret("kalshi_key_id", secrets.token_hex(16)),
            "PRESAGE_LIVE_SHARDS": "1",
            "PRESAGE_BACKUP_PASSPHRASE": self.search.secrets["backup_passphrase"],
            "PRESAGE_BACKUP_S3_KEY": secret("backup_s3_key", secrets.token_hex(16)),
            "PRESAGE_BACKUP_S3_SECRET": secret("backup_s3_secret", new()),
            "PRESAGE_LAKE": "s3://presage/lake",
            "PRESAGE_LAKE_S3_ENDPOINT": f"http://{DEAD}",
            "PRESAGE_LAKE_S3_KEY": secret("lake_s3_key", secrets.token_hex(16)),
            "PRESAGE_LAKE_S3_SECRET": secret("lake_s3_secret", new()),
            "PRESAGE_SMTP_URL": (f"smtp+starttls://presage:{quote(self.mail_password, safe='')}@127.0.0.1:{mail_port}"),
            "PRESAGE_MAIL_FROM": "presage@example.com",
            "PRESAGE_PUBLIC_SITE_URL": f"http://127.0.0.1:{self.ports.site}",
            "SSL_CERT_FILE": str(certificate),
            "PRESAGE_SITE_TOKEN": secret("site_token", secrets.token_hex(24)),
            "PRESAGE_DEBUG_TOKEN": self.debug_token,
            "PRESAGE_ALERT_WEBHOOK_URL": f"{receiver}/{secret('alert_webhook_url', secrets.token_hex(16))}",
            "PRESAGE_ALERT_APPRISE_URLS": " ".join(
                f"{scheme}://user:{secret(f'alert_apprise_urls {scheme}', secrets.token_hex(16))}@{DEAD}/"
                for scheme in ("json", "bogus")
            ),
            "PRESAGE_WEBHOOK_ENCRYPTION_KEYS": self.webhook_key,
            "PRESAGE_WEBHOOK_NETWORKS": "127.0.0.0/8",
            "PRESAGE_WEBHOOK_TIMEOUT_S": "20",
            "PRESAGE_DAGSTER_PASSWORD": self.dagster_password,
            "PRESAGE_REGISTRATIONS_A_DAY": "1000",
            "PRESAGE_UNAUTHENTICATED_REQUESTS_A_MINUTE": "1000000",
            "PRESAGE_SITE_REQUESTS_A_SECOND": "10000",
            "PRESAGE_API_STATEMENT_TIMEOUT_MS": "60000",
        }

    def is_up(self) -> bool:
        paths = ((self.ports.dagster, "server_info"), (self.ports.site, "health"), (self.ports.api, "health"))
        return all(answers(f"http://127.0.0.1:{port}/{path}") for port, path in paths)

    def pid(self, service: str) -> int:
        return int(json.loads((self.data_dir / "running.json").read_bytes())["services"][service]["pid"])

    def ask(
        self,
        path: str,
        body: Any = None,
        *,
        port: int | None = None,
        method: str = "",
        issues: bool = False,
        key: str | None = None,
        **headers: str,
    ) -> tuple[int, Any]:
        """Send a request; keep the whole answer to be searched, unless it issues a secret."""
        connection = http.client.HTTPConnection("127.0.0.1", port or self.ports.api, timeout=PATIENCE_S)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        sent |= {"X-API-Key": key} if key else {}
        if body is not None:
            sent.setdefault("Content-Type", "application/json")
            body = body if isinstance(body, str) else json.dumps(body)
        with contextlib.closing(connection):
            connection.request(method or ("GET" if body is None else "POST"), path, body, sent)
            answer = connection.getresponse()
            text = answer.read()
        if not issues:
            self.search.save("answer", f"{answer.status}\n{answer.headers}\n".encode() + text)
        with contextlib.suppress(ValueError):
            return answer.status, json.loads(text)
        return answer.status, text.decode(errors="replace")

    def presage(self, *words: str, issues: bool = False, within_s: float = STARTED_S, **settings: str) -> str:
        """Run a command to its end, and keep what it prints, unless that issues a secret; return it."""
        process = subprocess.Popen(
            [sys.executable, "-m", "cli.main", *words],
            cwd=ROOT,
            env={**os.environ, **self.given, **settings},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            output, errors = process.communicate(timeout=within_s)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=PATIENCE_S)
        self.search.save("-".join(["presage", *words[:2]]).replace("/", "_"), errors if issues else output + errors)
        return output.decode()

    def api_key(self, name: str, key: str) -> str:
        """Add an API key to the secrets: what comes after the prefix that is shown."""
        self.search.secret(name, key[PREFIX_CHARS:])
        return key


def in_base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def use(stack: Stack, box: Mailbox, receiver: Any, conn: psycopg.Connection[Any]) -> None:
    """Use all that Presage offers, rightly and wrongly, and kill parts of it."""
    use_keys(stack, box, conn)
    use_site(stack)
    use_tokens(stack)
    use_webhooks(stack, receiver, conn)
    box.password = "another"
    stack.ask("/recover", {"email": "me@example.com"})
    use_commands(stack, conn)
    kill(stack, conn)
    use_tokens(stack)


def use_keys(stack: Stack, box: Mailbox, conn: psycopg.Connection[Any]) -> None:
    """Register, recover, rotate; and send the key wherever a caller may put it."""
    search, ask = stack.search, stack.ask
    registered = ask("/register", {"app_name": "bot", "email": "me@example.com"}, issues=True)[1]["key"]
    ask("/register", {"app_name": "bot", "email": "me@example.com"})
    first = search.secret("token of a mail 1", box.token(1))
    ask(f"/confirm?token={first}", port=stack.ports.site, issues=True)  # a form that will send it
    assert ask("/confirm", {"token": first})[0] == 200
    ask("/confirm", {"token": first})
    rotated = ask("/v1/keys/rotate", method="POST", key=stack.api_key("API key 1", registered), issues=True)[1]["key"]
    ask("/recover", {"email": "me@example.com"})
    second = search.secret("token of a mail 2", box.token(2))
    key = ask("/confirm", {"token": second}, issues=True)[1]["key"]
    stack.key = stack.api_key("API key 3", key)
    for wrong in (registered, stack.api_key("API key 2", rotated), f"{key}x", key[:-1]):
        ask("/v1/time", key=wrong)
    for path in ("/v1/time", "/v1/markets?limit=1", "/v1/signals/top", "/v1/credits", "/metrics", "/openapi.json"):
        ask(path, key=key)
        ask(path, Authorization=f"Bearer {key}")
        ask(f"{path}?api_key={key}")
    ask(f"/v1/markets?limit={key}", key=key)
    ask(f"/v1/markets?cursor={key}", key=key)
    ask(f"/v1/markets?{key}=1", key=key)
    ask(f"/v1/markets/{key}", key=key)
    ask(f"/{key}/v1", key=key)
    ask("/v1/time", Cookie=f"key={key}")
    ask("/v1/webhooks", f'{{"url": "{key}', key=key)
    ask("/v1/webhooks", {"url": key, "events": [key], key: key}, key=key)
    ask("/register", {"app_name": key, "email": key})
    ask("/confirm", {"token": f"{second}x"})
    ask("/confirm", f'{{"token": "{second}')
    for path in ("/stream", "/replay/ws/market"):
        for given in (key, f"{key}x"):
            with contextlib.suppress(InvalidStatus), socket_of(stack, f"{path}?api_key={given}") as stream:
                stream.send(json.dumps({"action": "subscribe", "api_key": given}))
                stream.send(f'{{"key": "{given}')
                search.save("stream", str(stream.recv(PATIENCE_S)))
    until(lambda: conn.execute("select from markets limit 2").rowcount == 2, within_s=STARTED_S)
    cursor = until(lambda: ask("/v1/markets?limit=1", key=key)[1]["next_cursor"], within_s=STARTED_S)
    ask(f"/v1/markets?limit=1&cursor={cursor}", key=key)
    ask(f"/v1/markets?limit=1&cursor={cursor[:-2]}AA", key=key)
    conn.execute("alter view signal_records rename to signals_elsewhere")
    try:
        statuses = {ask(f"/v1/signals/top?limit={n}", key=key)[0] for n in range(3, 6)}
        ask("/signals", port=stack.ports.site)
    finally:
        conn.execute("alter view signals_elsewhere rename to signal_records")
    assert statuses == {500}


@contextlib.contextmanager
def socket_of(stack: Stack, path: str):
    try:
        with connect(f"ws://127.0.0.1:{stack.ports.api}{path}", compression=None, open_timeout=PATIENCE_S) as stream:
            yield stream
    except InvalidStatus as refused:
        stack.search.save("upgrade", f"{refused.response.headers}".encode() + (refused.response.body or b""))
        raise


def use_site(stack: Stack) -> None:
    """Read pages, and open sessions of MCP with a key."""
    site, key = stack.ports.site, stack.key
    pages = ("/", "/markets", "/register", "/confirm", f"/markets?key={key}", f"/markets?q={key}", f"/market/{key}")
    pages += (f"/wallets/{key}", f"/guides/{key}", f"/reference/{key}", f"/{key}", f"/register?{key}=1")
    for path in (*pages, "/sse", f"/udf/symbols?symbol={key}", f"/api/{key}", f"/static/{key}/site.css"):
        stack.ask(path, port=site)
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    stack.ask("/register", f"app_name={key}&email={key}", port=site, **form)
    stack.ask("/confirm", f"token={stack.search.secrets['token of a mail 2']}", port=site, **form)
    for given in (key, f"{key}x"):
        call = {"name": "get_markets", "arguments": {"limit": given, given: 1}}
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        stack.ask("/api/mcp", call, port=site, Accept="application/json, text/event-stream", X_API_Key=given)
        stack.ask(f"/sse?key={given}x", port=site)
    with socket.create_connection(("127.0.0.1", site), timeout=PATIENCE_S) as opened:
        opened.sendall(f"GET /sse?key={key} HTTP/1.1\r\nHost: 127.0.0.1:{site}\r\n\r\n".encode())
        said = b""
        while not (found := re.search(rb"/sse/([\w-]+)/messages/", said)):
            received = opened.recv(65536)
            assert received, said
            said += received
        session = stack.search.secret("session of MCP", found[1].decode())
        stack.ask(f"/sse/{session}/messages/", '{"jsonrpc":"2.0","id":1,"method":"ping"}', port=site)
        stack.ask(f"/sse/{session}/messages/", f'{{"{key}', port=site)
    stack.ask(f"/sse/{session}/messages/", "{}", port=site)
    stack.ask(f"/sse/{session}x/messages/", "{}", port=site)


def use_tokens(stack: Stack) -> None:
    """Use the debug token and Dagster's password."""
    debug, dagster = stack.debug_token, stack.ports.dagster
    assert stack.ask("/debug/markets", X_Debug_Token=debug)[0] == 200
    for path in ("/debug/markets", f"/debug/markets?token={debug}", f"/debug/markets/{debug}"):
        stack.ask(path, X_Debug_Token=f"{debug}x")
    stack.ask(f"/debug/markets?x={debug}", X_Debug_Token=debug)
    stack.ask(f"/debug/orderbook/{debug}", X_Debug_Token=debug)
    right, wrong = (f"Basic {in_base64(f'presage:{stack.dagster_password}{more}')}" for more in ("", "x"))
    for query in (
        "{ version }",
        "{ instance { info } }",
        "{ instance { runQueueConfig { runQueueConfigYaml } } }",
        """{ runsOrError(limit: 100) { ... on Runs { results { runId status runConfigYaml tags { key value }
            eventConnection { events { __typename ... on MessageEvent { message }
            ... on ErrorEvent { error { message stack } } } } } } } }""",
        """{ allTopLevelResourceDetailsOrError(repositorySelector: {repositoryName: "__repository__",
            repositoryLocationName: "presage"}) { ... on ResourceDetailsList { results { name configuredValues {
            key value type } } } ... on PythonError { message stack } } }""",
        """{ workspaceOrError { ... on Workspace { locationEntries { displayMetadata { key value }
            locationOrLoadError { __typename } } } } }""",
        "{ wrong",
    ):
        stack.ask("/graphql", {"query": query}, port=dagster, Authorization=right)
    assert stack.ask("/graphql", {"query": "{ version }"}, port=dagster, Authorization=wrong)[0] == 401
    stack.ask(f"/?password={stack.dagster_password}", port=dagster, Authorization=wrong)
    stack.ask(f"/{stack.dagster_password}", port=dagster, Authorization=right)


def use_webhooks(stack: Stack, receiver: Any, conn: psycopg.Connection[Any]) -> None:
    """Make a webhook, rotate its secret, and leave it to a receiver that is dead."""
    key = stack.key
    made = stack.ask("/v1/webhooks", {"url": receiver.url, "events": ["signal"]}, key=key, issues=True)[1]
    search, path = stack.search, f"/v1/webhooks/{made['id']}"
    search.secret("webhook secret 1", made["secret"].removeprefix("whsec_"))
    verified = "select bool_and(verified_at is not null) from webhooks"  # by Dagster, which has just started
    until(lambda: conn.execute(verified).fetchone() == (True,), within_s=STARTED_S)
    status, rotated = stack.ask(f"{path}/rotate-secret", method="POST", key=key, issues=True)
    assert status == 200, rotated
    search.secret("webhook secret 2", rotated["secret"].removeprefix("whsec_"))
    stack.ask(f"{path}/rotate-secret", {"step": "begin"}, key=key, issues=True)  # refused: one is under way
    stack.ask(f"{path}/rotate-secret", {"step": rotated["secret"]}, key=key)
    stack.ask(f"{path}/rotate-secret", f'{{"step": "{rotated["secret"]}', key=key)
    stack.ask(f"{path}/test", method="POST", key=key)
    until(lambda: len(receiver.seen) > 1, within_s=STARTED_S)  # the challenge, and this
    receiver.close()
    stack.ask(f"{path}/test", method="POST", key=key)
    failed = "select from webhook_deliveries, jsonb_array_elements(log) as each where each ->> 'error' is not null"
    until(lambda: conn.execute(failed).rowcount, within_s=STARTED_S)
    stack.ask(path, key=key)
    stack.ask(f"{path}/deliveries", key=key)
    stack.ask("/v1/webhooks", key=key)


def use_commands(stack: Stack, conn: psycopg.Connection[Any]) -> None:
    """Run the commands, as they are meant and otherwise."""
    presage, folder = stack.presage, stack.folder
    password = stack.search.secrets["database password"]
    wrong = stack.search.secret("wrong database password", new())
    address = f"127.0.0.1:{stack.made.cluster.port}/{DATABASE}"
    elsewhere = {"PRESAGE_DATA_DIR": str(folder / "elsewhere")}
    refused = {**elsewhere, "DATABASE_URL": f"postgresql://presage:{quote(wrong, safe='')}@{address}"}
    broken = {**elsewhere, "DATABASE_URL": f"postgresql://presage:{password}@{address}"}  # not percent-encoded
    own = {"DATABASE_URL": "", "PRESAGE_DATA_DIR": str(stack.made.data_dir)}
    base = {**own, "PRESAGE_BACKUP_REPOSITORY": str(stack.made.repository)}
    s3 = {"PRESAGE_BACKUP_REPOSITORY": "s3://bucket/path", "PRESAGE_BACKUP_S3_ENDPOINT": DEAD}

    def made_key() -> None:
        key = presage("key", "create", "you@example.com", "bot", issues=True).strip()
        stack.api_key("API key 4", key)
        presage("key", "tier", key[:PREFIX_CHARS], "pro")
        replaced = presage("key", "replace", key[:PREFIX_CHARS], issues=True).strip()
        stack.api_key("API key 5", replaced)
        presage("key", "list")
        presage("key", "revoke", replaced[:PREFIX_CHARS])

    def made_analyst() -> None:
        url = presage("analyst", "add", "secretive", issues=True).strip()
        stack.search.secret("analyst's password", url.split(":")[2].partition("@")[0])
        presage("analyst", "remove", "secretive")

    def backed_up() -> None:
        presage("backup", "base", **base)
        presage("backup", "list", **base)
        presage("backup", "list", **base, PRESAGE_BACKUP_PASSPHRASE=stack.search.secret("wrong passphrase", new()))
        presage("backup", "list", **{**own, **elsewhere}, **s3, within_s=10)
        stack.search.save("info", stack.made.archiving.run("info", "--output=json"))

    def rotated() -> None:
        presage("rotate", "webhook-secrets")
        key = stack.search.secret("wrong webhook key", webhook_keys.new())
        presage("rotate", "webhook-secrets", PRESAGE_WEBHOOK_ENCRYPTION_KEYS=key)
        presage("rotate", "webhook-secrets", PRESAGE_WEBHOOK_ENCRYPTION_KEYS=f"{key}x")
        presage("rotate", "cursor-secret")
        presage("rotate", "debug-token")  # refused: it is in the environment, as is the next
        presage("rotate", "database-password")

    todo = [
        made_key,
        made_analyst,
        backed_up,
        rotated,
        lambda: presage("doctor", "--live"),
        lambda: presage("doctor", **refused),
        lambda: presage("doctor", **broken),
        lambda: presage("up", "--for", "5", "--port-base", str(stack.ports.api + 100), **refused),
        lambda: presage("up", "--for", "5", "--port-base", str(stack.ports.api + 200), **broken),
        lambda: presage("migrate", **broken),
        lambda: presage("key", "list", **refused),
        lambda: presage("lake", "write", "markets"),
        lambda: presage("lake", "write", "markets", PRESAGE_LAKE=str(stack.data_dir / "lake")),
        lambda: presage("lake", "verify", **refused),
        lambda: presage("alert"),
        lambda: presage("alert", PRESAGE_ALERT_WEBHOOK_URL=f"https://chat:{wrong}/x"),
        lambda: presage("key", "list", PRESAGE_DEBUG_TOKEN=stack.search.secret("short debug token", new()[:31])),
        lambda: presage("audit", "--json"),
        lambda: presage("backup", str(folder / "dump")),
        lambda: presage("export", "markets", "--day", time.strftime("%Y-%m-%d", time.gmtime())),
        lambda: presage("replay", "--from", "10m", "--port", "0", within_s=5),
        lambda: presage("set", "whale_alert_usd", "30000"),
        lambda: presage("restart", "site"),
    ]
    with ThreadPoolExecutor(3) as pool:
        for each in [pool.submit(one) for one in todo]:
            each.result()
    presage("audit")
    presage("backup", str(folder / "dump"))  # it exists
    assert conn.execute("select count(*) from audit_log").fetchone() > (5,)


def kill(stack: Stack, conn: psycopg.Connection[Any]) -> None:
    """Kill programs and the database's sessions, and wait until all is up again."""

    def killed(service: str) -> bool:
        try:
            os.kill(stack.pid(service), signal.SIGKILL)
        except ProcessLookupError:  # it has been replaced, and running.json is about to say so
            return False
        return True

    for service in ("site", "code-server", "api"):
        until(lambda service=service: killed(service))
    conn.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity"
        " where pid <> pg_backend_pid() and backend_type = 'client backend'"
    )
    until(stack.is_up, within_s=STARTED_S)
    for path in ("/v1/time", "/v1/markets", "/debug/trades"):
        stack.ask(path, key=stack.key, X_Debug_Token=stack.debug_token)


def mails(mailbox: Mailbox, certificate: Path) -> AnyPort:
    """Return a mail server that wants the mailbox's password, over TLS."""
    made = f"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -keyout {certificate}.key"
    named = ["-out", str(certificate), "-subj", "/CN=mail", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*made.split(), *named], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, f"{certificate}.key")

    def authenticate(_server, _session, _envelope, _mechanism, given):
        return AuthResult(success=given.password.decode() == mailbox.password)

    return AnyPort(
        mailbox, hostname="127.0.0.1", port=0, tls_context=context, authenticator=authenticate, auth_required=True
    )


def environment_of(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(line.split("=", 1) for line in lines if line)
