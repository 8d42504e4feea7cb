"""Which host is called, by the switches that every AWS SDK knows: each client's calls go through a proxy here that notes where to."""

from __future__ import annotations

import contextlib
import http.server
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from sluice_checkpoints.aws import credentials
from sluice_checkpoints.aws.retry import Again, Patience
from sluice_checkpoints.aws.role import AssumedRole
from sluice_checkpoints.aws.role_sessions import credentials_of
from sluice_checkpoints.dynamodb.http import http_client
from sluice_checkpoints.dynamodb.table import DynamoTable, Endpoint
from sluice_checkpoints.errors import ServiceUnavailable
from sluice_checkpoints.position import TRIM_HORIZON
from sluice_checkpoints.stream.address import StreamAddress
from sluice_checkpoints.stream.catalog import BotoStreamCatalog
from sluice_consumer.kinesis import http as kinesis

ROLE = AssumedRole("arn:aws:iam::444455556666:role/orders-reader")
SWITCHES = (
    "AWS_USE_FIPS_ENDPOINT",
    "AWS_USE_DUALSTACK_ENDPOINT",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_KINESIS",
    "AWS_ENDPOINT_URL_STS",
    "AWS_ENDPOINT_URL_DYNAMODB",
)
FIPS = {"AWS_USE_FIPS_ENDPOINT": "true"}
DUAL_STACK = {"AWS_USE_DUALSTACK_ENDPOINT": "true"}
VPCE = "vpce-0a1b.{}.eu-west-1.vpce.amazonaws.com"
OWN = {f"AWS_ENDPOINT_URL_{name.upper()}": f"https://{VPCE.format(name)}" for name in ("kinesis", "sts", "dynamodb")}


class Proxy(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Connecting)
        self.hosts = list[str]()


class Connecting(http.server.BaseHTTPRequestHandler):
    def do_CONNECT(self) -> None:
        assert isinstance(self.server, Proxy)
        self.server.hosts.append(self.path.removesuffix(":443"))
        self.send_error(503)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    server = Proxy()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for name in (*SWITCHES, "NO_PROXY", "no_proxy", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "k")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    yield server
    server.shutdown()
    server.server_close()
    credentials._of_environment.cache_clear()


SURE_SECONDS = 60  # a call waits a second for credentials; this machine may be busy


def called(proxy: Proxy, region: str) -> dict[str, set[str]]:
    address = StreamAddress("orders", region, arn=f"arn:aws:kinesis:{region}:444455556666:stream/orders", deadline_seconds=0)
    table = DynamoTable("t", http_client(Endpoint(region)), Patience(limit=0))
    kinesis._calls.cache_clear()  # another test's has no proxy
    reading = kinesis.connect.__wrapped__(address)
    kinesis._calls.cache_clear()
    calls = {
        "tasks": lambda: reading.get_iterator("shardId-000000000000", TRIM_HORIZON),
        "catalog": BotoStreamCatalog(address, Patience(limit=0)).describe,
        "sts": lambda: credentials_of(ROLE, region).begun(SURE_SECONDS),
        "dynamodb": lambda: table.get("x"),
    }
    found = dict[str, set[str]]()
    for name, call in calls.items():
        proxy.hosts.clear()
        with contextlib.suppress(ServiceUnavailable, Again):
            call()
        found[name] = set(proxy.hosts)
    return found


@dataclass(frozen=True)
class Called:
    kinesis: str
    sts: str
    dynamodb: str


def plain(region: str, domain: str = "amazonaws.com", suffix: str = "") -> Called:
    return Called(*(f"{service}{suffix}.{region}.{domain}" for service in ("kinesis", "sts", "dynamodb")))


@pytest.mark.parametrize(
    ("region", "switches", "hosts"),
    [
        ("eu-west-1", {}, plain("eu-west-1")),
        ("us-east-1", FIPS, plain("us-east-1", suffix="-fips")),
        ("us-gov-west-1", {}, plain("us-gov-west-1")),
        ("us-gov-west-1", FIPS, replace(plain("us-gov-west-1"), dynamodb="dynamodb-fips.us-gov-west-1.amazonaws.com")),
        ("eu-west-1", DUAL_STACK, plain("eu-west-1", "api.aws")),
        ("us-east-1", FIPS | DUAL_STACK, plain("us-east-1", "api.aws", "-fips")),
        ("cn-north-1", {}, plain("cn-north-1", "amazonaws.com.cn")),
        ("eu-west-1", OWN, Called(*map(VPCE.format, ("kinesis", "sts", "dynamodb")))),
    ],
    ids=["plain", "FIPS", "GovCloud", "GovCloud, FIPS", "dual-stack", "dual-stack, FIPS", "China", "VPC endpoints"],
)
def test_the_sdks_own_switches_say_which_host_is_called(
    proxy: Proxy, monkeypatch: pytest.MonkeyPatch, region: str, switches: dict[str, str], hosts: Called
) -> None:
    """A stream has one host, for tasks and for the catalog: none of an account's own, which a VPC endpoint or a firewall may not know."""
    for name, value in switches.items():
        monkeypatch.setenv(name, value)
    wanted = {"tasks": {hosts.kinesis}, "catalog": {hosts.kinesis}, "sts": {hosts.sts}, "dynamodb": {hosts.dynamodb}}
    assert called(proxy, region) == wanted
