"""Raw Kubernetes objects to values. Reading only; what they mean is decided in `record` and `plan`."""

from __future__ import annotations

import signal
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import orjson

from sluice_operator.change import Wanted
from sluice_operator.model import Exit, Job, Observed, Pod, Resource, Trouble
from sluice_operator.spec import InvalidSpec, parse
from sluice_operator.view import View
from sluice_operator.wire import load_report, load_status

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sluice_operator.model import Status

Json = dict[str, Any]

CONSUMER, ROLE, ATTEMPT = "sluice.dev/consumer", "sluice.dev/role", "sluice.dev/attempt"
SPEC_HASH, TARGET, REPORT = "sluice.dev/spec-hash", "sluice.dev/executors", "sluice.dev/report"
CONTAINERS = {"driver": "driver", "migration": "migrate", "executor": "executor"}
EXITS = {0: "Completed", 65: "Refused", 75: "Held", 76: "Fenced"}
SIGNALS = frozenset(signal.Signals)
STUCK = {
    "ErrImagePull": "ImagePullBackOff",  # the two take turns; one word keeps the condition still
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
        retry=notes.get("sluice.dev/retry"),
        force=notes.get("sluice.dev/force"),
        accept_loss=notes.get("sluice.dev/accept-loss"),
    )


def view(raw: Json, observed: Observed, now: datetime) -> View:
    """One look. An invalid spec is replaced by the last good one, if there was one."""
    status = load_status(raw.get("status"))
    wanted, problem = accept(raw.get("spec") or {}, status)
    return View(resource=resource(raw), wanted=wanted, problem=problem, status=status, observed=observed, now=now)


def accept(raw: Json, status: Status) -> tuple[Wanted | None, str | None]:
    """The spec to carry out, and why the present one is not that."""
    try:
        wanted = Wanted(parse(raw), raw)
    except InvalidSpec as error:
        return _last_good(status), str(error)
    started_alone = status.driver.attempt > 0 and status.migration is None
    if started_alone and wanted.spec.migrate_from is not None:
        text = "spec.migrateFrom: cannot be added once the consumer has started; it has checkpoints of its own"
        return _last_good(status), text
    return wanted, None


def _last_good(status: Status) -> Wanted | None:
    if status.last_good_spec is None:
        return None
    try:
        return Wanted(parse(status.last_good_spec), status.last_good_spec)
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
    """A pod with our labels."""
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
        attempt=int(labels.get(ATTEMPT) or 0),
        owner=_owner(meta),
        phase=status.get("phase", "Pending"),
        gone_by=instant(meta.get("deletionTimestamp")),
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
        owner=_owner(meta),
        state=ended.get("type", "Active"),
        message=ended.get("message", ""),
        deleting="deletionTimestamp" in meta,
    )


def instant(text: str | None) -> datetime | None:
    """RFC 3339 to a time in UTC."""
    return datetime.fromisoformat(text).astimezone(UTC) if text else None


def _owner(meta: Json) -> str | None:
    return next((ref["uid"] for ref in meta.get("ownerReferences") or () if ref.get("controller")), None)


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
    changes = [c["lastTransitionTime"] for c in status.get("conditions") or () if c.get("lastTransitionTime")]  # an evicted pod tells no other time
    at = instant((ended or {}).get("finishedAt") or max(changes, default=raw["metadata"]["creationTimestamp"]))
    if at is None:
        raise ValueError("a pod without creationTimestamp")
    message = str(words.get("message") or status.get("message") or "")
    return Exit(code=code, reason=_why(raw, ended or {}, words, code), message=message[:1024], at=at)


def _why(raw: Json, ended: Json, words: Json, code: int | None) -> str:
    """Who ended it: the driver's own word for 65, 75 and 76, then whoever took the pod away, then the kernel."""
    if code in EXITS and code != 0:
        return str(words.get("reason") or EXITS[code])
    status = raw.get("status") or {}
    if code is None or any(_true(c) and c["type"] == "DisruptionTarget" for c in status.get("conditions") or ()):
        return "Evicted"
    if "deletionTimestamp" in raw["metadata"]:
        return "Drained" if code == 0 else "Killed"
    if ended.get("reason") == "OOMKilled":
        return "OOMKilled"
    return str(words.get("reason") or EXITS.get(code, "Failed"))


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
    return value if isinstance(value, int) else None


def _true(condition: Json) -> bool:
    return condition.get("status") == "True"
