"""What the real client makes of answers: pages of a list, errors by what to do next, and none at all."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from http_fake import HttpFake, Reply
from kubernetes.client.api_client import ApiClient
from kubernetes.client.configuration import Configuration
from port_places import Place, through
from simulated_cluster import BEGIN

from sluice_lab.fakes.cluster import MemoryCluster
from sluice_operator.cluster.client import ApiServer
from sluice_operator.cluster.port import Rejected, Unavailable


def test_a_list_is_read_to_its_last_page() -> None:
    http = HttpFake(MemoryCluster(lambda: BEGIN), page=2)
    place = Place(through(http), "default")
    for name in "abcde":
        place.pod(name)
    found = place.cluster.list("Pod", "default", {"sluice.dev/consumer": "orders"})
    assert [pod["metadata"]["name"] for pod in found] == list("abcde")
    assert len([method for method, _ in http.requests if method == "GET"]) == 3


@pytest.mark.parametrize(("status", "error"), [(401, Unavailable), (410, Unavailable), (429, Unavailable), (500, Unavailable), (403, Rejected)])
def test_an_error_is_named_by_what_to_do_next(status: int, error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    """410 is a list that took so long that its next page is gone: begin again."""
    http = HttpFake(MemoryCluster(lambda: BEGIN))
    monkeypatch.setattr(http, "call_api", lambda *_, **__: Reply(status, {"reason": "Some", "message": "words"}))
    with pytest.raises(error, match="words"):
        through(http).list("Pod", "default", {})


@pytest.mark.parametrize(
    ("told", "seconds"), [("7", 7), ("", 0), ("-1", 0), ("soon", 0), ("1e9", 0), ("9" * 400, 0), ("Thu, 26 Nov 2026 01:00:00 GMT", 0)]
)
def test_a_server_that_wants_to_be_left_alone_is_understood(told: str, seconds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the seconds of `Retry-After`, as of priority and fairness; whatever else it says there is nothing."""
    http = HttpFake(MemoryCluster(lambda: BEGIN))
    monkeypatch.setattr(http, "call_api", lambda *_, **__: Reply(429, {"message": "too many"}, {"Retry-After": told}))
    with pytest.raises(Unavailable) as raised:
        through(http).list("Pod", "default", {})
    assert raised.value.after == seconds


def test_no_answer_is_an_answer_of_its_own() -> None:
    nowhere = Configuration(host="http://127.0.0.1:9")
    nowhere.retries = False
    with pytest.raises(Unavailable):
        ApiServer(ApiClient(nowhere)).get("Pod", "default", datetime.now(UTC).strftime("%H%M%S"))
