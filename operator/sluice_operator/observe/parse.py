"""Raw Kubernetes objects to values. What they mean is decided in `plan`."""

from __future__ import annotations

import signal
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import orjson

from sluice_operator.cluster.port import CONSUMER_KIND
from sluice_operator.names import GROUP
from sluice_operator.observe.ownership import own
from sluice_operator.plan import known_words as words_of
from sluice_operator.spec import policy as bounds
from sluice_operator.spec.changes import DesiredSpec
from sluice_operator.spec.fields import InvalidSpec, parse
from sluice_operator.spec.policy import Policy
from sluice_operator.state.objects import Job, Observed, Pod, Resource, Trouble
from sluice_operator.state.serialization import load_report, load_status
from sluice_operator.state.status import Exit
from sluice_operator.state.view import View

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sluice_operator.state.status import Status

Json = dict[str, Any]

CONSUMER, ROLE, ATTEMPT = "sluice.dev/consumer", "sluice.dev/role", "sluice.dev/attempt"
SPEC_HASH, TARGET, REPORT = "sluice.dev/spec-hash", "sluice.dev/executors", "sluice.dev/report"
CONTAINERS = {"driver": "driver", "migration": "migrate", "executor": "executor"}
EXITS = {0: "Completed", 65: "Refused", 75: "Held", 76: "Fenced"}
TENANTS = Policy()
DIGITS = 9  # of an attempt
NOTE = 253  # characters of an annotation of the resource
MOST = 2**53  # of a number: greater whole numbers are not exact in every JSON parser
SIGNALS = frozenset(signal.Signals)
STUCK = {
    "ErrImagePull": "ImagePullBackOff",  # the two alternate; one reason keeps the condition stable
    "ImagePullBackOff": "ImagePullBackOff",
    "ErrImageNeverPull": "ImagePullBackOff",
    "InvalidImageName": "InvalidImageName",
    "CreateContainerConfigError": "CreateContainerConfigError",
    "CreateContainerError": "CreateContainerError",
    "RunContainerError": "RunContainerError",
    "CrashLoopBackOff": "CrashLoopBackOff",  # init containers
}


def resource(raw: Json) -> Resource:
    """Metadata and annotations of a KinesisConsumer."""
    meta = raw["metadata"]
    notes = meta.get("annotations") or {}
    return Resource(
        namespace=meta["namespace"],
        name=meta["name"],
        uid=meta["uid"],
        version=meta["resourceVersion"],
        generation=meta.get("generation", 0),
        deleting="deletionTimestamp" in meta,
        finalizers=tuple(meta.get("finalizers") or ()),
        paused=notes.get("sluice.dev/paused", "false") != "false",
        retry=_note(notes, "sluice.dev/retry"),
        restart=_note(notes, "sluice.dev/restart"),
        force=_note(notes, "sluice.dev/force"),
        accept_loss=_note(notes, "sluice.dev/accept-loss"),
    )


def _note(notes: Json, key: str) -> str | None:
    """The annotation's value, cut to 253 characters: it may have 256 KiB."""
    return notes[key][:NOTE] if key in notes else None


def view(raw: Json, observed: Observed, now: datetime, policy: Policy = TENANTS) -> View:
    """The view of a resource, with its own pods and Jobs only. An invalid spec is replaced by the last good one, if there is one."""
    status, about = load_status(raw.get("status")), resource(raw)
    wanted, problem = accept(raw.get("spec") or {}, status, about.namespace, policy)
    return View(resource=about, wanted=wanted, problem=problem, status=status, observed=own(about, status, observed), now=now)


def accept(raw: Json, status: Status, namespace: str, policy: Policy) -> tuple[DesiredSpec | None, str | None]:
    """The spec to carry out, and why the present one is not that."""
    try:
        wanted = DesiredSpec(parse(raw), raw)
    except InvalidSpec as error:
        return _last_good(status), str(error)
    if out_of_bounds := bounds.problem(wanted.spec, namespace, policy):
        return _last_good(status), out_of_bounds
    started_alone = status.driver.attempt > 0 and status.migration is None
    if started_alone and wanted.spec.migrate_from is not None:
        text = "spec.migrateFrom: cannot be added once the consumer has started; it has checkpoints of its own"
        return _last_good(status), text
    return wanted, None


def _last_good(status: Status) -> DesiredSpec | None:
    if status.last_good_spec is None:
        return None
    try:
        return DesiredSpec(parse(status.last_good_spec), status.last_good_spec)
    except InvalidSpec:  # an older operator accepted it
        return None


def observed(pods: Iterable[Pod], jobs: Iterable[Job]) -> Observed:
    """Pods sorted into their roles, each by name."""
    ordered = sorted(pods, key=lambda pod: (pod.attempt, pod.name))
    by_role = {role: tuple(pod for pod in ordered if pod.role == role) for role in CONTAINERS}
    return Observed(
        drivers=by_role["driver"],
        executors=by_role["executor"],
        migrators=by_role["migration"],
        jobs=tuple(sorted(jobs, key=lambda job: job.name)),
    )


def pod(raw: Json) -> Pod:
    """A pod with the operator's labels. They do not prove whose it is (`ownership`)."""
    meta, status = raw["metadata"], raw.get("status") or {}
    labels, notes = meta.get("labels") or {}, meta.get("annotations") or {}
    role = labels.get(ROLE, "")
    container = _container(status, CONTAINERS.get(role, ""))
    ended: Json | None = (container.get("state") or {}).get("terminated")
    result = _words(ended)
    return Pod(
        name=meta["name"],
        uid=meta["uid"],
        role=role,
        attempt=_attempt(labels.get(ATTEMPT)),
        **_owner(meta),
        phase=status.get("phase", "Pending"),
        gone_by=instant(meta.get("deletionTimestamp")),
        forced=meta.get("deletionGracePeriodSeconds") == 0,
        started_at=_started(container),
        spec_hash=notes.get(SPEC_HASH),
        target=notes.get(TARGET),
        exit=_exit(raw, ended, result),
        trouble=_trouble(status),
        report=load_report(notes.get(REPORT)),
        rows=_number(result.get("shards")),
        warnings=_number(result.get("warnings")),
    )


def job(raw: Json) -> Job:
    """A migration Job."""
    meta, status = raw["metadata"], raw.get("status") or {}
    ended: Json = next((c for c in status.get("conditions") or () if _true(c) and c["type"] in {"Complete", "Failed"}), {})
    return Job(
        name=meta["name"],
        uid=meta["uid"],
        **_owner(meta),
        spec_hash=(meta.get("annotations") or {}).get(SPEC_HASH),
        state=ended.get("type", "Active"),
        message=ended.get("message", "")[: words_of.LONGEST],
        deleting="deletionTimestamp" in meta,
    )


def instant(text: str | None) -> datetime | None:
    """RFC 3339 to a time in UTC."""
    return datetime.fromisoformat(text).astimezone(UTC) if text else None


def _owner(meta: Json) -> Json:
    """Uid, kind and name of the controller. A kind of the same name in another API group is another kind."""
    ref: Json = next((ref for ref in meta.get("ownerReferences") or () if ref.get("controller")), {})
    kind, group = ref.get("kind", ""), ref.get("apiVersion", "").partition("/")[0]
    named = kind if (kind == CONSUMER_KIND) == (group == GROUP) else f"{kind}.{group}"
    return {"owner": ref.get("uid"), "owner_kind": sys.intern(named), "owner_name": ref.get("name", "")}


def _attempt(label: str | None) -> int:
    """The attempt in the label; 0 for a value that no operator writes."""
    return int(label) if label and len(label) <= DIGITS and label.isascii() and label.isdecimal() else 0


def _container(status: Json, name: str) -> Json:
    return next((item for item in status.get("containerStatuses") or () if item.get("name") == name), {})


def _started(container: Json) -> datetime | None:
    state = container.get("state") or {}
    return instant((state.get("running") or state.get("terminated") or {}).get("startedAt"))


def _exit(raw: Json, ended: Json | None, words: Json) -> Exit | None:
    status = raw.get("status") or {}
    if ended is None and status.get("phase") not in {"Failed", "Succeeded"}:
        return None
    code = ended.get("exitCode") if ended else None
    changes = [c["lastTransitionTime"] for c in status.get("conditions") or () if c.get("lastTransitionTime")]  # an evicted pod has no other time
    at = instant((ended or {}).get("finishedAt") or max(changes, default=raw["metadata"]["creationTimestamp"]))
    if at is None:
        raise ValueError("a pod without creationTimestamp")
    message = words_of.message(words.get("reason"), words.get("message") or status.get("message"))
    return Exit(code=code, reason=_why(raw, ended or {}, words, code), message=message, at=at)


def _why(raw: Json, ended: Json, words: Json, code: int | None) -> str:
    """Why it ended: the driver's own reason for 65, 75 and 76, then an eviction or deletion, then the kernel's."""
    if code in EXITS and code != 0:
        return words_of.reason(words.get("reason"), EXITS[code])
    status = raw.get("status") or {}
    if code is None or any(_true(c) and c["type"] == "DisruptionTarget" for c in status.get("conditions") or ()):
        return "Evicted"
    if "deletionTimestamp" in raw["metadata"]:
        return "Drained" if code == 0 else "Killed"
    if ended.get("reason") == "OOMKilled":
        return "OOMKilled"
    return words_of.reason(words.get("reason"), EXITS.get(code, "Failed"))


def _words(ended: Json | None) -> Json:
    if ended is None:
        return {}
    text = ended.get("message") or ""
    try:
        words = orjson.loads(text)
    except ValueError:
        words = {"message": (text.strip().splitlines() or [""])[-1]}  # the end of the log: of a traceback, what it was
    killer = ended.get("exitCode", 0) - 128
    if killer in SIGNALS and not (isinstance(words, dict) and words.get("reason")):
        return {"message": f"killed by {signal.Signals(killer).name}"}  # the end of the log is no reason then
    return words if isinstance(words, dict) else {"message": text}


def _trouble(status: Json) -> Trouble | None:
    every = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    waiting = [(item.get("state") or {}).get("waiting") or {} for item in every]
    for state in waiting:
        if state.get("reason") in STUCK:
            return Trouble(STUCK[state["reason"]], state.get("message") or state["reason"])
    stuck = (c for c in status.get("conditions") or () if c.get("reason") == "Unschedulable" and c.get("status") == "False")
    return next((Trouble("Unschedulable", c.get("message", "")) for c in stuck), None)


def _number(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < MOST else None


def _true(condition: Json) -> bool:
    return condition.get("status") == "True"
