"""Raw Kubernetes objects to values. What they mean is decided in `plan`."""

from __future__ import annotations

import re
import signal
import sys
from datetime import datetime
from typing import TYPE_CHECKING, Any

import orjson

from sluice_operator.cluster.port import CONSUMER_KIND, POOL_KIND
from sluice_operator.names import END_REACHED, GROUP, printable
from sluice_operator.observe.ownership import own
from sluice_operator.plan import known_words
from sluice_operator.resource import policy as bounds
from sluice_operator.resource.changes import DesiredSpec, with_version
from sluice_operator.resource.fields import InvalidSpec, parse
from sluice_operator.resource.policy import Policy
from sluice_operator.state.objects import Job, Observed, Pod, Resource, Trouble
from sluice_operator.state.serialization import TEXT, WORD, load_status
from sluice_operator.state.status import Exit, Moved, Status
from sluice_operator.state.view import View
from sluice_operator.untrusted.values import EARLIEST, LATEST, NAME, WORDS, Unreadable, moment, named, objects, part, request, text, texts, whole

if TYPE_CHECKING:
    from collections.abc import Iterable

Json = dict[str, Any]

CONSUMER, POOL, ROLE, ATTEMPT = "sluice.dev/consumer", "sluice.dev/pool", "sluice.dev/role", "sluice.dev/attempt"
PAUSED, RESTART = "sluice.dev/paused", "sluice.dev/restart"
MANAGED = "app.kubernetes.io/managed-by"
UNLISTED = "(unlisted)"  # `run.live_read` marks so what no watch shows
OURS = {CONSUMER_KIND, POOL_KIND}
ROLES = {CONSUMER_KIND: "driver", "Pod": "executor", "Job": "migration", POOL_KIND: "pool"}  # by the kind of the controller
DRIVER_NAME = re.compile(r".+-driver-([1-9]\d{0,8})")
ATTEMPTS = re.compile(r".+-(?:driver|pool)-([1-9]\d{0,8})")
SPEC_HASH, TARGET, REPORT = "sluice.dev/spec-hash", "sluice.dev/executors", "sluice.dev/report"
TABLE_HASH = "sluice.dev/table-hash"
CONTAINERS = {"driver": "driver", "migration": "migrate", "executor": "executor", "pool": "driver"}
HELD = 75
INTERRUPTED = "Interrupted"  # a drain of a driver that has `spec.until`, before it got there
EXITS = {0: "Completed", 65: "Refused", HELD: "Held", 76: "Fenced"}
TENANTS = Policy()
SCALE = {"suspend", "replicas", "autoscale"}  # fields that change how much of a consumer runs, and nothing of what it does
MEMBERS = 256  # that an exit message names
MORE = "…"  # after them, if some have no room
FINALIZERS = 16  # that are kept of a pod, to be named
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


def resource(raw: Json, kind: str = CONSUMER_KIND) -> Resource:
    """Metadata and annotations of a KinesisConsumer, or of a pool."""
    meta = part(raw, "metadata")
    notes = part(meta, "annotations")
    return Resource(
        namespace=named(raw, "namespace"),
        name=named(raw, "name"),
        uid=named(raw, "uid"),
        version=named(raw, "resourceVersion"),
        generation=whole(meta.get("generation")) or 0,
        deleting="deletionTimestamp" in meta,
        finalizers=texts(meta, "finalizers"),
        paused=notes.get(PAUSED, "false") != "false",
        retry=request(notes, "sluice.dev/retry"),
        restart=request(notes, RESTART),
        force=request(notes, "sluice.dev/force"),
        accept_loss=request(notes, "sluice.dev/accept-loss"),
        kind=kind,
    )


def view(raw: Json, observed: Observed, now: datetime, policy: Policy = TENANTS) -> View:
    """The view of a resource, with its own pods and Jobs only. An invalid spec is replaced by the last good one, if there is one.

    Raises:
        Unreadable: this operator did not write the stored status. Not for a resource that is being deleted: its pods are found by their owner.
    """
    about = resource(raw)
    status = status_of(raw, about)
    wanted, problem = accept(raw.get("spec") or {}, status, about.namespace, policy)
    former, stopped = _former(wanted, status, about.namespace, policy), rests(part(raw, "spec"))
    seen = own(about, status, observed)
    return View(resource=about, asked=wanted, former=former, problem=problem, rests=stopped, status=status, observed=seen, now=now)


def rests(spec: Json) -> bool:
    """Whether a spec, valid or not, says that nothing shall run."""
    return spec.get("suspend") is True or whole(spec.get("replicas")) == 0


def status_of(raw: Json, about: Resource) -> Status:
    """The status as stored.

    Raises:
        Unreadable: this operator did not write it. Not for a resource that is being deleted.
    """
    try:
        return load_status(raw.get("status"))
    except Unreadable:
        if not about.deleting:
            raise
        return Status()


def accept(raw: Json, status: Status, namespace: str, policy: Policy) -> tuple[DesiredSpec | None, str | None]:
    """The spec to carry out, and why the present one is not that."""
    try:
        wanted = DesiredSpec(parse(raw), raw)
    except InvalidSpec as error:
        return _last_good(raw, status, namespace, policy), str(error)
    if out_of_bounds := bounds.problem(wanted.spec, namespace, policy):
        return _last_good(raw, status, namespace, policy), out_of_bounds
    started_alone = status.driver.attempt > 0 and status.migration is None
    if started_alone and wanted.spec.migrate_from is not None:
        text = "spec.migrateFrom: cannot be added once the consumer has started, because it has its own checkpoints"
        last = _last_good(raw, status, namespace, policy)
        return None if last and last.spec.migrate_from else last, text
    return wanted, None


def _last_good(raw: Json, status: Status, namespace: str, policy: Policy) -> DesiredSpec | None:
    """The last spec that was accepted, if it is still within the bounds, or says what the user's own spec says.

    The second: an operator or a policy that was before took it, and what it started continues. Anything else that is out of bounds may have been
    written by somebody who may write a status, and no more.
    """
    if status.last_good_spec is None:
        return None
    try:
        last = DesiredSpec(parse(status.last_good_spec), status.last_good_spec)
    except InvalidSpec:
        return None
    return last if _scaled(last.raw) == _scaled(raw) or not bounds.problem(last.spec, namespace, policy) else None


def _former(asked: DesiredSpec | None, status: Status, namespace: str, policy: Policy) -> DesiredSpec | None:
    """The spec with the proven version in it. None: there is none, it does not fit the rest, or it is not within the bounds."""
    if asked is None or status.proven is None or status.proven_spec is None:
        return None
    raw = with_version(asked.raw, status.proven_spec)
    try:
        former = DesiredSpec(parse(raw), raw)
    except InvalidSpec:
        return None
    return former if former.is_hash(status.proven.hash) and not bounds.problem(former.spec, namespace, policy) else None


def _scaled(raw: Json | str) -> Json:
    return {} if isinstance(raw, str) else {key: value for key, value in raw.items() if key not in SCALE}


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


def report(raw: Json) -> str | None:
    """The text of the report on a pod; None: it has none, or one that is too long."""
    return text(part(raw, "metadata", "annotations"), REPORT, TEXT)


def pod(raw: Json) -> Pod:
    """A pod with the operator's labels, which do not prove whose it is (`ownership`), and without what it reports.

    Raises:
        Unreadable: it has no name or no uid.
    """
    meta, status = part(raw, "metadata"), part(raw, "status")
    labels, notes, role = part(meta, "labels"), part(meta, "annotations"), _role(meta)
    container = _container(status, CONTAINERS.get(role, ""))
    ended = part(container, "state").get("terminated")
    ended = ended if isinstance(ended, dict) else None
    result = _words(ended)
    return Pod(
        name=named(raw, "name"),
        uid=named(raw, "uid"),
        role=role,
        attempt=_attempt(meta) if role != "executor" else _attempt_of_executor(labels),
        **controller(meta),
        phase=text(status, "phase") or "Pending",
        gone_by=(moment(meta["deletionTimestamp"]) or LATEST) if meta.get("deletionTimestamp") else None,
        finalizers=_finalizers(meta),
        forced=meta.get("deletionGracePeriodSeconds") == 0,
        started_at=_started(container),
        spec_hash=text(notes, SPEC_HASH),
        table_hash=text(notes, TABLE_HASH),
        target=text(notes, TARGET),
        exit=_exit(raw, ended, result),
        trouble=None if _runs(container) else _trouble(status),
        beside=_trouble(status) if _runs(container) else None,
        unlisted=UNLISTED in labels or text(labels, MANAGED) != "sluice",
        rows=whole(result.get("shards")),
        warnings=whole(result.get("warnings")),
        moved=_moved(result) if result.get("reason") == "Reset" else None,
        working=_working(result) if role == ROLES[POOL_KIND] else None,
    )


def _working(result: Json) -> tuple[str, ...] | None:
    """The members that an exit message names (docs/pools.md, "The contract of operator and driver").

    None: it does not name all, or there is none. A kernel leaves no message.
    """
    names = texts(result, "working")
    if not result.get("reason") or len(names) > MEMBERS or MORE in names:
        return None
    return tuple(printable(name[:NAME]) for name in names)


def _moved(result: Json) -> Moved:
    """What a Job says that it moved (docs/interfaces.md, "Reset Job")."""
    return Moved(
        to=_line(result, "to"),
        digest=_line(result, "digest"),
        shards=whole(result.get("shards")),
        records_again=whole(result.get("recordsAgain")),
        records_passed_over=whole(result.get("recordsPassedOver")),
        batch=whole(result.get("batch")),
        warnings=whole(result.get("warnings")),
    )


def _line(result: Json, key: str) -> str | None:
    line = text(result, key, WORD)
    return None if line is None else printable(line)


def job(raw: Json) -> Job:
    """A Job of a migration, or of a move of positions.

    Raises:
        Unreadable: it has no name or no uid.
    """
    meta = part(raw, "metadata")
    ended: Json = next((c for c in objects(part(raw, "status"), "conditions") if _true(c) and c.get("type") in ("Complete", "Failed")), {})
    return Job(
        name=named(raw, "name"),
        uid=named(raw, "uid"),
        **controller(meta),
        spec_hash=text(part(meta, "annotations"), SPEC_HASH),
        state=text(ended, "type") or "Active",
        active=(whole(part(raw, "status").get("active")) or 0) > 0,
        message=text(ended, "message", WORDS) or "",
        deleting="deletionTimestamp" in meta,
        finalizers=_finalizers(meta),
    )


def _finalizers(meta: Json) -> tuple[str, ...]:
    return tuple(name[:NAME] for name in texts(meta, "finalizers")[:FINALIZERS])


def consumer(raw: Json) -> str | None:
    """The name of the KinesisConsumer that controls a pod or a Job; of one that none controls, what its label says."""
    owner = controller(part(raw, "metadata"))
    return owner["owner_name"] if owner["owner_kind"] == CONSUMER_KIND else text(part(raw, "metadata", "labels"), CONSUMER)


def pool(raw: Json) -> str | None:
    """The name of the KinesisConsumerPool that controls a pod; of one that none controls, such as an executor, what its label says."""
    owner = controller(part(raw, "metadata"))
    if owner["owner_kind"] in OURS:
        return owner["owner_name"] if owner["owner_kind"] == POOL_KIND else None
    return text(part(raw, "metadata", "labels"), POOL)


def controller(meta: Json) -> Json:
    """Uid, kind and name of the controller. A kind of the same name in another API group is another kind."""
    ref: Json = next((ref for ref in objects(meta, "ownerReferences") if ref.get("controller")), {})
    kind, group = text(ref, "kind") or "", (text(ref, "apiVersion") or "").partition("/")[0]
    kind_of_group = kind if (kind in OURS) == (group == GROUP) else f"{kind}.{group}"
    return {"owner": text(ref, "uid"), "owner_kind": sys.intern(kind_of_group), "owner_name": text(ref, "name") or ""}


def _role(meta: Json) -> str:
    """What a pod is by its controller, whatever its label says. Of one without a controller a driver's name decides, then the label."""
    owner = controller(meta)
    if owner["owner_kind"] in ROLES:
        return ROLES[owner["owner_kind"]]
    made = owner["owner"] is None and SPEC_HASH in part(meta, "annotations") and DRIVER_NAME.fullmatch(text(meta, "name") or "")
    return "driver" if made else text(part(meta, "labels"), ROLE) or ""


def _attempt(meta: Json) -> int:
    """The attempt in the name of a driver; 0 for a name that no operator gives."""
    match = ATTEMPTS.fullmatch(text(meta, "name") or "")
    return int(match[1]) if match else 0


def _attempt_of_executor(labels: Json) -> int:
    """The attempt in its label; 0 without one."""
    match = re.fullmatch(r"[0-9]{1,9}", text(labels, ATTEMPT) or "")
    return int(match[0]) if match else 0


def _container(status: Json, name: str) -> Json:
    return next((item for item in objects(status, "containerStatuses") if item.get("name") == name), {})


def _runs(container: Json) -> bool:
    return bool(part(container, "state", "running"))


def _started(container: Json) -> datetime | None:
    state = part(container, "state")
    return moment((part(state, "running") or part(state, "terminated")).get("startedAt"))


def _exit(raw: Json, ended: Json | None, words: Json) -> Exit | None:
    status = part(raw, "status")
    if ended is None and status.get("phase") not in ("Failed", "Succeeded"):
        return None
    code = _code(ended)
    why = _why(raw, ended or {}, words, code)
    message = known_words.message(None if why == END_REACHED else words.get("reason"), words.get("message") or status.get("message"))
    return Exit(code=code, reason=why, message=message, at=_ended_at(raw, ended))


def _code(ended: Json | None) -> int | None:
    return None if ended is None else whole(ended.get("exitCode"))


def _ended_at(raw: Json, ended: Json | None) -> datetime:
    """When it ended. An evicted pod has no other time than that of its conditions; a pod without any time ended long ago."""
    changes = [changed for c in objects(part(raw, "status"), "conditions") if (changed := moment(c.get("lastTransitionTime")))]
    finished, made = moment((ended or {}).get("finishedAt")), moment(part(raw, "metadata").get("creationTimestamp"))
    return finished or max(changes, default=made or EARLIEST)


def _why(raw: Json, ended: Json, words: Json, code: int | None) -> str:
    """Why it ended: at the end of its run, the driver's own reason for 65, 75 and 76, then an eviction or deletion, then the kernel's."""
    if code == 0 and words.get("reason") == END_REACHED:
        return END_REACHED
    drained = code == 0 or (code == HELD and words.get("reason") == INTERRUPTED)
    if code in EXITS and not drained:
        return known_words.reason(words.get("reason"), EXITS[code])
    if code is None or any(_true(c) and c.get("type") == "DisruptionTarget" for c in objects(part(raw, "status"), "conditions")):
        return "Evicted"
    if "deletionTimestamp" in part(raw, "metadata"):
        return "Drained" if drained else "Killed"
    if ended.get("reason") == "OOMKilled":
        return "OOMKilled"
    return known_words.reason(words.get("reason"), EXITS.get(code, "Failed"))


def _words(ended: Json | None) -> Json:
    if ended is None:
        return {}
    message = text(ended, "message", TEXT) or ""
    try:
        words = orjson.loads(message)
    except ValueError:
        words = {"message": (message.strip().splitlines() or [""])[-1]}  # the end of the log: of a traceback, what it was
    killer = (_code(ended) or 0) - 128
    if killer in SIGNALS and not (isinstance(words, dict) and words.get("reason")):
        return {"message": f"killed by {signal.Signals(killer).name}"}  # the end of the log is not a reason then
    return words if isinstance(words, dict) else {"message": message}


def _trouble(status: Json) -> Trouble | None:
    for item in (*objects(status, "initContainerStatuses"), *objects(status, "containerStatuses")):
        waiting = part(item, "state", "waiting")
        if stuck := STUCK.get(text(waiting, "reason") or ""):
            return Trouble(stuck, text(waiting, "message", WORDS) or stuck)
    unplaced = (c for c in objects(status, "conditions") if c.get("reason") == "Unschedulable" and c.get("status") == "False")
    return next((Trouble("Unschedulable", text(c, "message", WORDS) or "") for c in unplaced), None)


def _true(condition: Json) -> bool:
    return condition.get("status") == "True"
