"""Aggregates are taken apart as KCL's own library does it, byte by byte: the real `AggregatorUtil` reads whatever is generated here."""

from __future__ import annotations

import base64
import hashlib
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sluice_consumer.shards.aggregation import MAGIC, WholeRecord, user_records

pytestmark = pytest.mark.built

HERE = Path(__file__).parent
OUTER = "outer"
DROPPED = (
    "!java.lang.NoClassDefFoundError: javax/xml/bind/DatatypeConverter"  # it logs what it drops; without JAXB (Java 11 and later) it fails there
)


@dataclass(frozen=True)
class Apart:
    """What became of a Kinesis record; `count` is how many user records the aggregate has, None: it is none, or KCL fails."""

    told: str
    users: tuple[tuple[int, str, bytes], ...] = ()
    count: int | None = None


Library = Callable[[bytes], Apart]


@contextmanager
def library(jars: Path, *hash_keys: str) -> Iterator[Library]:
    command = ["java", "-cp", f"{jars}/*", str(HERE / "Deaggregate.java"), *hash_keys]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, bufsize=1) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        write, read = program.stdin, program.stdout

        def asked(data: bytes) -> Apart:
            write.write(base64.b64encode(data).decode() + "\n")
            write.flush()
            return parsed(read.readline().strip())

        yield asked
        write.close()


def parsed(line: str) -> Apart:
    count, *users = line.split(" ")
    if not count.isdigit():
        return Apart(line)
    fields = [user.split(":") for user in users]
    return Apart("", tuple((int(sub), bytes.fromhex(key).decode(), bytes.fromhex(data)) for sub, key, data in fields), int(count))


@pytest.fixture(scope="module")
def kcl(jars: Path) -> Iterator[Library]:
    with library(jars) as asked:
        assert asked(seal(field(1, b"a") + field(3, RECORD))).users == ((0, "a", b"x"),)
        yield asked


def ours(data: bytes) -> Apart:
    users = user_records(OUTER, data)
    if len(users) == 1 and isinstance(users[0], WholeRecord):
        assert users[0][1:] == (OUTER, data)
        return Apart("-")
    return Apart("", tuple(map(tuple, users)), len(users))  # type: ignore[arg-type]  # of three each


def compare(data: bytes, kcl: Library) -> None:
    """Both are the same. What KCL drops is delivered: behind what it delivers, or with all of the aggregate."""
    theirs, found = kcl(data), ours(data)
    if theirs.told == DROPPED or theirs.count != (len(theirs.users) if theirs.count is not None else None):
        assert found.told == "-" or found.users[: len(theirs.users)] == theirs.users
        assert found.told == "-" or len(found.users) == (theirs.count or len(found.users))
    else:
        assert found == theirs


# -- what is generated -------------------------------------------------------------------------------------------------------------


def varint(number: int, length: int = 1) -> bytes:
    """A varint of at least so many bytes: longer than it has to be."""
    found = bytearray()
    while number >= 0x80 or len(found) + 1 < length:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def seal(body: bytes) -> bytes:
    return MAGIC + body + hashlib.md5(body, usedforsecurity=False).digest()


RECORD = b"\x08\x00" + field(3, b"x")
EDGES = (0x41, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xED, 0xEF, 0xF0, 0xF1, 0xF4, 0xF5, 0xF7, 0xF8, 0xFF)
LARGE = st.sampled_from([2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**32 + 1, 2**63, 2**64 - 1, 2**64, 2**69])
NUMBERS = st.one_of(st.integers(0, 3), st.integers(0, 3), st.integers(0, 300), LARGE)
LENGTHS = st.integers(0, 19).map(lambda one: one if one in {2, 3, 5, 10, 11} else 1)
VARINTS = st.builds(varint, NUMBERS, LENGTHS)
BYTES = st.one_of(st.binary(max_size=9), st.lists(st.sampled_from(EDGES), max_size=7).map(bytes), st.text(max_size=5).map(str.encode))
KINDS = st.integers(0, 39).map(lambda one: one if one in {1, 4, 5, 6, 7} else (0, 2, 3)[one % 3])
SIZES = st.integers(0, 19).flatmap(lambda one: LARGE if one == 0 else st.integers(0, 9) if one == 1 else st.just(0))  # 0: the right one


def sized(tag: bytes, content: bytes, wrong: int, length: int) -> bytes:
    return tag + varint(wrong or len(content), length) + content


@st.composite
def unknown(draw: st.DrawFn, depth: int = 2) -> bytes:
    number = draw(st.integers(1, 20) | st.sampled_from([2**29 - 1, 2**29, 2**32 + 1]))
    kind = draw(KINDS)
    tag = varint(number << 3 | kind, draw(LENGTHS))
    if kind == 0:
        return tag + draw(VARINTS)
    if kind == 2:
        return sized(tag, draw(BYTES), draw(SIZES), draw(LENGTHS))
    if kind == 3:
        inside = b"".join(draw(st.lists(unknown(depth - 1), max_size=2))) if depth else b""
        return tag + inside + varint((number if draw(st.integers(0, 9)) else 7) << 3 | 4)
    return tag + b"8" * {1: 8, 5: 4}.get(kind, 0)


TAG = st.lists(
    st.one_of(BYTES.map(lambda key: field(1, key)), BYTES.map(lambda value: field(2, value)), st.just(b"\x08\x01"), unknown()), max_size=3
).map(b"".join)
PARTS = st.one_of(
    st.builds(lambda number, length: b"\x08" + varint(number, length), NUMBERS, LENGTHS),
    st.builds(lambda data, wrong, length: sized(b"\x1a", data, wrong, length), BYTES, SIZES, LENGTHS),
    st.builds(lambda data: field(1, data), BYTES),  # packed
    st.just(b"\x18\x00"),
    st.builds(lambda number: b"\x10" + varint(number), st.integers(0, 2)),
    TAG.map(lambda tag: field(4, tag)),
    unknown(),
)


@st.composite
def records(draw: st.DrawFn) -> bytes:
    needed = [b"\x08" + varint(draw(st.integers(0, 1))), field(3, draw(BYTES))]
    content = [part for part in needed if draw(st.integers(0, 29))] + draw(st.lists(PARTS, max_size=2))
    return b"".join(draw(st.permutations(content)))


HASH_KEYS = st.integers(0, 2**128 - 1).map(lambda number: str(number).encode())
FIELDS = st.one_of(
    records().map(lambda record: field(3, record)),
    records().map(lambda record: field(3, record)),
    BYTES.map(lambda key: field(1, key)),
    HASH_KEYS.map(lambda key: field(2, key)),
    unknown(),
)
BODIES = st.builds(
    lambda keys, rest: b"".join(field(1, key) for key in keys) + b"".join(rest), st.lists(BYTES, min_size=2, max_size=3), st.lists(FIELDS, max_size=5)
)
PLAIN = st.lists(BYTES, min_size=1, max_size=4).map(
    lambda users: field(1, b"key") + b"".join(field(3, b"\x08\x00" + field(3, data)) for data in users)
)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    body = bytearray(draw(BODIES | PLAIN))
    for _ in range(draw(st.integers(1, 3))):
        at, how = draw(st.integers(0, len(body))), draw(st.sampled_from("cdit"))
        if how == "t":
            del body[at:]
        elif how == "i":
            body.insert(at, draw(st.integers(0, 255)))
        elif at < len(body):
            body[at : at + 1] = b"" if how == "d" else bytes([draw(st.integers(0, 255))])
    return bytes(body)


MANY = settings(max_examples=700, deadline=None, suppress_health_check=list(HealthCheck))


# -- what is claimed ---------------------------------------------------------------------------------------------------------------


@MANY
@given(body=BODIES)
def test_messages_of_every_form_are_read_as_kcl_reads_them(kcl: Library, body: bytes) -> None:
    compare(seal(body), kcl)


@MANY
@given(body=mutated())
def test_damaged_messages_are_read_as_kcl_reads_them(kcl: Library, body: bytes) -> None:
    compare(seal(body), kcl)


@settings(MANY, max_examples=300)
@given(body=BODIES, at=st.integers(0, 200), by=st.integers(0, 255), cut=st.integers(0, 40))
def test_damaged_envelopes_are_read_as_kcl_reads_them(kcl: Library, body: bytes, at: int, by: int, cut: int) -> None:
    data = bytearray(seal(body))
    data[at % len(data)] ^= by
    compare(bytes(data[: len(data) - cut] if by % 2 else data), kcl)


def test_every_text_of_three_bytes_at_the_edges_is_read_as_java_reads_it(kcl: Library) -> None:
    """All of one, two and three bytes out of those at which UTF-8 changes its mind: surrogates, overlong forms, characters that are cut."""
    keys = [bytes(each) for length in (1, 2, 3) for each in product(EDGES, repeat=length)]
    for start in range(0, len(keys), 500):
        some = keys[start : start + 500]
        users = b"".join(field(3, b"\x08" + varint(index) + field(3, b"x")) for index in range(len(some)))
        compare(seal(b"".join(field(1, key) for key in some) + users), kcl)


@settings(MANY, max_examples=60)
@given(keys=st.lists(st.lists(st.sampled_from(EDGES), min_size=4, max_size=12).map(bytes), min_size=50, max_size=50))
def test_longer_text_is_read_as_java_reads_it(kcl: Library, keys: list[bytes]) -> None:
    users = b"".join(field(3, b"\x08" + varint(index) + field(3, b"x")) for index in range(len(keys)))
    compare(seal(b"".join(field(1, key) for key in keys) + users), kcl)


@pytest.mark.parametrize("levels", [1, 97, 98, 99, 100, 101])
@pytest.mark.parametrize("where", ["aggregate", "record", "tag"])
def test_messages_are_as_deep_as_kcl_lets_them_be(kcl: Library, where: str, levels: int) -> None:
    """A hundred levels, of which a record is one and a tag another."""
    groups = b"\x4b" * levels + b"\x4c" * levels
    tag = field(4, field(1, b"t") + (groups if where == "tag" else b""))
    record = RECORD + tag + (groups if where == "record" else b"")
    body = field(1, b"a") + field(3, record) + (groups if where == "aggregate" else b"")
    compare(seal(body), kcl)


def test_an_aggregate_whose_user_record_has_no_key_in_the_table_is_delivered_whole(kcl: Library) -> None:
    """KCL drops it and all that follow, or fails, where its JAXB is missing."""
    data = seal(field(1, b"a") + field(3, RECORD) + field(3, b"\x08\x07" + field(3, b"y")) + field(3, RECORD))
    assert kcl(data) == Apart(DROPPED)
    assert user_records(OUTER, data) == [WholeRecord(2, OUTER, data)]


def test_user_records_of_another_shard_are_delivered_though_kcl_drops_them(jars: Path) -> None:
    """After a reshard KCL drops the whole aggregate if one of them hashes elsewhere."""
    data = seal(field(1, b"a") + field(1, b"b") + b"".join(field(3, b"\x08" + varint(i % 2) + field(3, b"x")) for i in range(4)))
    below = int.from_bytes(hashlib.md5(b"a", usedforsecurity=False).digest())
    with library(jars, str(below), str(below)) as kcl:
        assert (kcl(data).count, kcl(data).users) == (4, ())
    assert len(user_records(OUTER, data)) == 4


def test_an_aggregate_beyond_64_mib_is_delivered_whole_though_kcl_takes_it_apart(kcl: Library) -> None:
    """The bound of docs/protocol.md; KCL has none."""
    key, count = b"k" * 100_000, 700
    data = seal(field(1, key) + field(3, b"\x08\x00" + field(3, b"")) * count)
    theirs = kcl(data)
    assert theirs.count == len(theirs.users) == count
    assert user_records(OUTER, data) == [WholeRecord(count - 1, OUTER, data)]
