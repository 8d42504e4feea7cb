"""What is kept of an object that was read. Pure.

Many objects of strangers have to fit into memory: of each, what a plan needs stays. A resource that is not small stays as bytes, for a byte of JSON
may become thirty of memory.
"""

from __future__ import annotations

from typing import Any

import orjson

from sluice_operator.names import GROUP
from sluice_operator.observe import parse, seats
from sluice_operator.resource.fields import MAX_BYTES, TOO_LARGE
from sluice_operator.resource.rollout import ALWAYS
from sluice_operator.state.serialization import TEXT
from sluice_operator.untrusted.values import objects, part, request, text, whole

Json = dict[str, Any]

SMALL = 8 * 1024  # bytes of a resource that stays as it is: most are smaller, and reading them costs nothing
NOTE = 1024  # bytes of an annotation of others
CONDITIONS = 32
STREAM = ("number", "openBatch", "batchAt", "reportedAt")
READ = (parse.SPEC_HASH, parse.TABLE_HASH, parse.TARGET, parse.REPORT)
OF_POOLS = ("members", "readyMembers")
OF_SEATS = (seats.SEAT, seats.LEAVE, seats.REPORT)


def packed(body: Json) -> tuple[Json | bytes, Json]:
    """A resource as it is kept: without what other programs noted, and without a spec that is too large to be carried out; and its outline."""
    body = {**body, "metadata": _metadata(body)}
    try:
        data = orjson.dumps(body)
        if len(data) > SMALL and len(orjson.dumps(body.get("spec"))) > MAX_BYTES:
            body["spec"] = TOO_LARGE
            data = orjson.dumps(body)
    except TypeError:  # no API server writes such a value, but a fake may
        return body, outline(body)
    # a copy: orjson's own bytes may hold a buffer of sixty times their length
    return body if len(data) <= SMALL else bytes(memoryview(data)), outline(body)


def unpacked(kept: Json | bytes) -> Json:
    """The resource."""
    body: Json = orjson.loads(kept) if isinstance(kept, bytes) else kept
    return body


def outline(body: Json) -> Json:
    """What a resource's metrics and its driver's pod are found by, in a bounded number of values: a scrape reads all resources at once."""
    meta, status = body["metadata"], part(body, "status")
    conditions = [{"type": text(item, "type"), "status": text(item, "status")} for item in objects(status, "conditions")[:CONDITIONS]]
    kept = {
        "phase": text(status, "phase"),
        "replicas": whole(status.get("replicas")),
        "conditions": conditions,
        "stream": {key: value for key in STREAM if _is_small(value := part(status, "stream").get(key))},
        "driver": {key: text(part(status, "driver"), key) for key in ("pod", "uid")},
        **({"deaths": _deaths(status)} if "members" in status else {}),
    }
    kept |= {key: whole(status.get(key)) for key in OF_POOLS if key in status}
    spec = body.get("spec")
    names = {key: meta.get(key) for key in ("namespace", "name", "uid", "resourceVersion")}
    rests = "deletionTimestamp" in meta or parse.rests(part(body, "spec"))
    edition = (names["uid"], whole(meta.get("generation")), request(part(meta, "annotations"), parse.RESTART))
    about = {"pool": _pool(body), "edition": edition, "rests": rests, "failover": text(part(body, "spec", "rollout"), "standby") == ALWAYS}
    return {"metadata": names, "spec": spec if isinstance(spec, str) else None, "status": kept, **about}


def _deaths(status: Json) -> Json:
    """Of a pool: how many members are out, and the most deaths in a row of one that is not."""
    deaths = part(status, "deaths")
    return {"out": len(objects(deaths, "out")), "most": max((whole(item.get("deaths")) or 0 for item in objects(deaths, "named")), default=0)}


def _pool(body: Json) -> str | None:
    """The pool that a consumer runs in: of its last good spec, while the present one is refused or not looked at yet and names none."""
    spec, status = part(body, "spec"), part(body, "status")
    last, named = part(status, "lastGoodSpec"), text(spec, "pool")
    refused = any(item.get("type") == "SpecValid" and item.get("status") == "False" for item in objects(status, "conditions")[:CONDITIONS])
    if refused and last:
        return text(last, "pool")
    unseen = whole(status.get("observedGeneration")) != whole(body["metadata"].get("generation"))
    return named or (text(last, "pool") if unseen else None)


def of_pod_or_job(body: Json) -> Json:
    """A pod or Job of a live read: its metadata, with the annotations that are read, and its status."""
    meta = _metadata(body)
    there = part(meta, "annotations")
    notes = {key: note for key in there if key in READ or key.startswith(OF_SEATS) if (note := text(there, key, TEXT + 1)) is not None}
    return {"metadata": {**meta, "annotations": notes}, "status": body.get("status")}


def _metadata(body: Json) -> Json:
    meta = {key: value for key, value in part(body, "metadata").items() if key != "managedFields"}
    if notes := part(meta, "annotations"):
        meta["annotations"] = {key: value for key, value in notes.items() if key.startswith(GROUP) or not _is_long(value)}
    return meta


def _is_small(value: Any) -> bool:
    return isinstance(value, int) or (isinstance(value, str) and len(value) < NOTE)


def _is_long(value: Any) -> bool:
    return isinstance(value, str) and len(value) > NOTE
