"""The real client asks for records in CBOR, and in JSON where a service does not speak it."""

from __future__ import annotations

from typing import ClassVar

import cbor2
import pytest
from reading.cbor import Style
from reading.replies import DATE_MILLIS, PASSING, RECORD, Answer, Server, error, get_records, spoken

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.position import Position
from sluice_consumer.kinesis.client import IteratorExpired, Records
from sluice_consumer.kinesis.codec import CBOR, ENCODING, chosen
from sluice_consumer.kinesis.http import HttpKinesis


class TestCbor:
    """Records are asked for in CBOR, and in JSON from a service that does not speak it."""

    HELD = Records(["7", "8"], ["k", "l"], [b"\x00x", b""], [1_700_000_000_001, 1_700_000_000_002])

    def test_records_come_in_cbor(self, fluent: HttpKinesis, server: Server) -> None:
        server.says((200, Style().reply(self.HELD)))
        page = get_records(fluent)
        assert (page.records, page.next_iterator, page.behind_millis, page.server_millis) == (self.HELD, "next", 12, DATE_MILLIS)
        assert (server.asked[0][2], spoken(server)) == ({"ShardIterator": "iterator", "Limit": 5}, ["cbor-1.1"])
        assert "Signature=" in server.asked[0][3]["Authorization"]

    @pytest.mark.parametrize("nothing", [b"\xf6", b"\xf7"], ids=["null", "undefined"])
    def test_the_end_of_a_shard_in_cbor(self, fluent: HttpKinesis, server: Server, nothing: bytes) -> None:
        """CBOR has two words for nothing."""
        server.says((200, b"\xa2\x67Records\x80\x71NextShardIterator" + nothing))
        assert get_records(fluent).next_iterator is None

    def test_iterators_are_asked_for_in_json(self, fluent: HttpKinesis, server: Server) -> None:
        """Nobody has to know in which unit a time is sent in CBOR."""
        server.says({"ShardIterator": "token"})
        fluent.get_iterator("shard", Position.timestamp(1_700_000_000_123))
        assert spoken(server) == ["json-1.1"]

    SILENT: ClassVar[dict[str, Answer]] = {
        "the content type is refused": error("SerializationException"),
        "HTTP's word for it": (415, b""),
        "an operation that is unknown so": error("UnknownOperationException", status=404),
        "a refusal that says nothing": (400, b"<html>"),
        "a reply in JSON": (200, b'{"Records": [], "NextShardIterator": "x"}'),
        "a reply that is cut": (200, Style().reply(HELD)[:-3]),
    }

    @pytest.mark.parametrize("answer", SILENT.values(), ids=SILENT.keys())
    def test_a_service_without_it_is_asked_in_json_at_once_and_from_then_on(
        self, fluent: HttpKinesis, server: Server, slept: list[float], answer: Answer
    ) -> None:
        server.says(answer, {"Records": [RECORD]})
        assert get_records(fluent).records.data == [b"\x00x"]
        get_records(fluent)
        assert (spoken(server), slept) == (["cbor-1.1", "json-1.1", "json-1.1"], [])

    @pytest.mark.parametrize("name", ["throughput", "internal", "a gateway", "a mesh with a rate limit", "a proxy that waited", "no connection"])
    def test_what_passes_is_no_reason_to_change(self, fluent: HttpKinesis, server: Server, name: str) -> None:
        server.says(PASSING[name], (200, Style().reply(self.HELD)))
        assert len(get_records(fluent).records) == 2
        assert spoken(server) == ["cbor-1.1"] * 2

    def test_an_emulator_that_fails_over_it_without_a_word_is_asked_in_json(self, fluent: HttpKinesis, server: Server, slept: list[float]) -> None:
        """As moto does, which is never at AWS's own address."""
        fluent._wire._may_lack_cbor = True
        server.says((500, b"<html>"), {"Records": [RECORD]})
        assert get_records(fluent).records.data == [b"\x00x"]
        assert (spoken(server), slept) == (["cbor-1.1", "json-1.1"], [])

    def test_a_service_that_has_spoken_it_may_fail(self, fluent: HttpKinesis, server: Server) -> None:
        fluent._wire._may_lack_cbor = True
        answer = (200, Style().reply(self.HELD))
        server.says((503, b"<html>"), answer, (500, b"<html>"), answer)
        assert [len(get_records(fluent).records), len(get_records(fluent).records)] == [2, 2]
        assert spoken(server) == ["cbor-1.1"] * 4

    def test_errors_are_understood_in_cbor(self, fluent: HttpKinesis, server: Server) -> None:
        server.says((400, cbor2.dumps({"__type": "ExpiredIteratorException", "message": "old"})))
        with pytest.raises(IteratorExpired, match="old"):
            get_records(fluent)

    def test_only_what_was_read_is_paced(self, fluent: HttpKinesis, server: Server, slept: list[float]) -> None:
        server.says((200, Style().reply(Records(["7"], ["k"], [bytes(4 * 1024 * 1024)], [1]))))
        get_records(fluent)
        get_records(fluent)
        assert sum(slept) == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize(("value", "kind"), [("", "cbor-1.1"), ("cbor", "cbor-1.1"), ("JSON", "json-1.1")])
def test_the_environment_names_the_format(value: str, kind: str) -> None:
    assert chosen({ENCODING: value}).content_type.endswith(kind)
    assert chosen({}) is CBOR


def test_a_format_that_nobody_knows_is_refused() -> None:
    with pytest.raises(Refused, match=f"^{ENCODING}: 'xml' is neither cbor nor json$"):
        chosen({ENCODING: "xml"})
