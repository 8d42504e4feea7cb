"""A stranger: a user and an admission policy who label, copy, annotate, forge, refuse and orphan. Rules of the machine."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING

from hypothesis import strategies as st
from hypothesis.stateful import rule
from steering.admission import ANSWERS
from steering.world import KEY, World

from sluice_lab.fakes.cluster import copied
from sluice_operator.observe.parse import CONSUMER

if TYPE_CHECKING:
    from sluice_operator.cluster.port import Json

seconds = st.one_of(st.integers(1, 4), st.integers(1, 40))
FOREVER = 10**6  # seconds: until the example ends
HOLD = "theirs.example.com/hold"
ROLES = ["driver", "executor", "migration"]
ATTEMPTS = ["abc", "", "1", "7", "-1", "1e3", "9" * 40]
OURS = [CONSUMER, CONSUMER, "sluice.dev/role", "sluice.dev/attempt", "app.kubernetes.io/managed-by"]
CHANGED = st.sampled_from([None, None, "payments", "driver", "executor", "7"])
OWNERS: dict[str, Json] = {
    "another kind": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "orders"},
    "another group's": {"apiVersion": "example.com/v1", "kind": "KinesisConsumer", "name": "orders"},
    "another pod": {"apiVersion": "v1", "kind": "Pod", "name": "orders-driver-x"},
    "another job": {"apiVersion": "batch/v1", "kind": "Job", "name": "orders-migrate"},
}
REFUSED = [("patch", "Pod"), ("patch", "KinesisConsumer"), ("create", "Pod"), ("create", "Job"), ("delete", "Pod"), ("status", "KinesisConsumer")]
WORDS = "words of no use " * 250  # 4 kB with blanks
RUBBISH = {"digits": "9" * 5000, "words": WORDS, "nothing": "", "less than nothing": "-1"}
NOTES = ["retry", "restart", "force", "accept-loss"]
VALUES = ["", " ", "\t\n ", "x" * 300, "again", "again"]
HELD: Json = {"openShards": 4, "heldShards": 3}
REPORTS: dict[str, str] = {
    "malformed": "{",
    "no object": "[[[[7]]]]",
    "no numbers": json.dumps({"number": "seven", "phase": 8}),
    "big numbers": json.dumps({"number": 2, "phase": "Draining", "batch": 2**63 + 5, "records": 7}),
    "bigger numbers": json.dumps({"number": 2, "phase": "Draining", "batch": 2**80, "records": -(2**70)}),
    "endless numbers": '{"number": 3, "phase": "Draining", "recordsPerSecond": 1e999}',
    "words": json.dumps({"number": 4, "phase": WORDS, "deadline": WORDS, **HELD}),
    "no time": json.dumps({"number": 5, "phase": "Draining", "draining": [{"pod": WORDS, "since": 1e30}], **HELD}),
    "no zone": json.dumps({"number": 6, "phase": "Draining", "draining": [{"pod": "x", "deadline": "2026-11-21T10:00:00"}], **HELD}),
    "drains": json.dumps({"number": 8, "phase": "Draining", "draining": [{"pod": f"orders-1-exec-{n}"} for n in range(5000)], **HELD}),
    "warnings": json.dumps({"number": 9, "phase": "Running", "warnings": [f"SourceMoved: {n} {WORDS}" for n in range(40)], **HELD}),
}
SAYS: dict[str, Json] = {
    "evicted": {"reason": "Evicted", "message": "somebody took the pod away"},
    "drained": {"reason": "Drained", "message": "as I was asked to"},
    "forced": {"reason": "Forced", "message": WORDS},
    "long": {"reason": WORDS, "message": WORDS},
    "odd": {"reason": {"x": [1]}, "message": ["y"]},
    "a class": {"reason": "SinkGone", "message": "no route to host"},
}


class Stranger:
    """Nothing of what is theirs is the resource's: it neither waits for it nor ends it, and nothing that they write ends a pass."""

    world: World

    # -- labels and copies ---------------------------------------------------------------------------------------------------------

    @rule(role=st.sampled_from([*ROLES, "other"]), attempt=st.sampled_from(ATTEMPTS), owner=st.sampled_from([None, *OWNERS]), seconds=seconds)
    def label(self, role: str, attempt: str, owner: str | None, seconds: int) -> None:
        """A pod of somebody else gets labels of ours."""
        labels = {"app.kubernetes.io/managed-by": "sluice", "sluice.dev/consumer": KEY.name, "sluice.dev/role": role, "sluice.dev/attempt": attempt}
        self._make("Pod", f"theirs-{role}", {"containers": [{"name": "theirs", "image": "theirs"}]}, {"labels": labels}, owner)
        self.world.run(seconds)

    @rule(kind=st.sampled_from(["Pod", "Pod", "Job", "executor", "migration"]), label=st.sampled_from(OURS), value=CHANGED, seconds=seconds)
    def unlabel(self, kind: str, seconds: int, label: str = CONSUMER, value: str | None = None) -> None:
        """A driver ("Pod"), a Job or a pod of theirs is set aside, as a pod of a ReplicaSet may be: a label of ours is taken off, or changed."""
        for body in self.world.ours("Job") if kind == "Job" else self.world.pods("driver" if kind == "Pod" else kind):
            self.world.memory.edit(body, {"metadata": {"labels": {label: value}}})
        self.world.run(seconds)

    @rule(seconds=seconds)
    def label_job(self, seconds: int) -> None:
        """So does a Job, which has an end already."""
        labels = {"sluice.dev/consumer": KEY.name, "sluice.dev/role": "migration"}
        self._make("Job", "theirs", {}, {"labels": labels}, None)
        self.world.run(seconds)

    @rule(seconds=seconds)
    def copy(self, seconds: int) -> None:
        """`kubectl debug --copy-to --keep-labels`: labels and annotations, no owner; its container does something else, and runs on."""
        for driver in self.world.drivers()[:1]:
            meta = driver["metadata"]
            kept = {key: copied(meta[key]) for key in ("labels", "annotations")}
            self._make("Pod", f"{meta['name']}-copy", {"containers": copied(driver["spec"]["containers"])}, kept, None)
        self.world.run(seconds)

    def _make(self, kind: str, name: str, spec: Json, meta: Json, owner: str | None) -> None:
        memory, ledger = self.world.memory, self.world.ledger
        head = {**meta, "namespace": KEY.namespace, "name": f"{name}-{memory.version}"}
        if owner is not None:
            ref = OWNERS[owner]
            there = memory.create({"kind": "Theirs", "metadata": {"namespace": KEY.namespace, "name": f"{ref['name']}-{memory.version}"}})
            head["ownerReferences"] = [{**ref, "uid": there["metadata"]["uid"], "controller": True}]
        body = memory.create({"kind": kind, "metadata": head, "spec": spec})
        ledger.foreign.add(body["metadata"]["uid"])
        if kind == "Job":
            memory.set_status("Job", KEY.namespace, head["name"], {"active": 1})

    # -- annotations ---------------------------------------------------------------------------------------------------------------

    @rule(what=st.sampled_from(["resource", "rubbish", "copy"]), seconds=seconds)
    def force_wrongly(self, what: str, seconds: int) -> None:
        """The uid of the resource, an easy slip; or of something else."""
        body, theirs = self.world.resource(), sorted(self.world.ledger.foreign)
        uid = {"resource": body["metadata"]["uid"] if body else "", "rubbish": "none such " * 40, "copy": theirs[-1] if theirs else ""}[what]
        self.world.annotate(force=uid)
        self.world.run(seconds)

    @rule(note=st.sampled_from(["accept-loss", "retry"]), text=st.sampled_from(sorted(RUBBISH)), seconds=seconds)
    def annotate_rubbish(self, note: str, text: str, seconds: int) -> None:
        self.world.annotate(**{note: RUBBISH[text]})
        self.world.run(seconds)

    @rule(name=st.sampled_from(NOTES), value=st.sampled_from(VALUES), seconds=seconds)
    def note(self, name: str, value: str, seconds: int) -> None:
        """What a template renders: nothing, blanks, too much, or what it rendered before."""
        if name == "restart" and value.strip() and self.world.noted(name) != value:
            self.world.restart_asked_at = self.world.now
        self.world.annotate(**{name: value})
        self.world.run(seconds)

    @rule(seconds=st.integers(1, 12))
    def impatient(self, seconds: int) -> None:
        for _ in range(seconds):
            self.world.ask_restart()
            self.world.run(1)

    @rule(seconds=seconds)
    def give_up_held(self, seconds: int) -> None:
        """A driver is given up whose pod somebody else's finalizer holds for a while."""
        for driver in [pod for pod in self.world.drivers()[:1] if "deletionTimestamp" not in pod["metadata"]]:
            self.world.memory.edit(driver, {"metadata": {"finalizers": [HOLD]}})
            self.world.annotate(force=driver["metadata"]["uid"])
            self.world.run(seconds)
            self.world.memory.edit(driver, {"metadata": {"finalizers": []}})

    @rule(held=st.booleans(), seconds=seconds)
    def hold(self, held: bool, seconds: int) -> None:  # noqa: FBT001 - hypothesis passes names
        """Another program's finalizer keeps the pods of drivers, until that program lets them go. None is put on what is being deleted."""
        for driver in [pod for pod in self.world.drivers() if not held or "deletionTimestamp" not in pod["metadata"]]:
            self.world.memory.edit(driver, {"metadata": {"finalizers": [HOLD] if held else []}})
        self.world.run(seconds)

    @rule(report=st.sampled_from(sorted(REPORTS)), seconds=seconds)
    def forge(self, report: str, seconds: int) -> None:
        """A report that the driver has not written is believed until its next one comes."""
        self.world.disturb()
        for driver in self.world.drivers():
            self.world.memory.edit(driver, {"metadata": {"annotations": {"sluice.dev/report": REPORTS[report]}}})
        self.world.run(seconds)

    @rule(times=st.integers(5, 40))
    def flap(self, times: int) -> None:
        self.world.disturb()
        for turn in range(times):
            for driver in self.world.drivers():
                said = driver["metadata"]["annotations"].get("sluice.dev/report", "")
                if said.startswith('{"'):
                    report = {**json.loads(said), "warnings": ["Isolating: batch 7"] if turn % 2 else []}
                    self.world.memory.edit(driver, {"metadata": {"annotations": {"sluice.dev/report": json.dumps(report)}}})
            self.world.run(1)

    @rule(says=st.sampled_from(sorted(SAYS)), code=st.sampled_from([1, 65, 75]), times=st.integers(1, 2), seconds=seconds)
    def driver_says(self, says: str, code: int, times: int, seconds: int) -> None:
        self.world.habits.exits += [code] * times
        self.world.habits.words = SAYS[says]
        self.world.run(seconds)

    @rule(sidecar=st.booleans())
    def inject(self, sidecar: bool) -> None:  # noqa: FBT001 - hypothesis passes names
        """A webhook puts a container into new pods that does not end with the others."""
        self.world.habits.sidecar = sidecar

    # -- refusals and orphans ------------------------------------------------------------------------------------------------------

    @rule(what=st.sampled_from(REFUSED), answer=st.sampled_from(sorted(ANSWERS)), lasts=st.sampled_from([5, 40, 100, FOREVER]), seconds=seconds)
    def refuse(self, what: tuple[str, str], answer: str, lasts: int, seconds: int) -> None:
        """An admission policy refuses one kind of write; for a while, or until the end of the example."""
        self.world.disturb()
        self.world.admission.policies[what] = (self.world.now + timedelta(seconds=lasts), answer)
        self.world.run(seconds)

    @rule(seconds=seconds)
    def orphan_by_hand(self, seconds: int) -> None:
        """The finalizer is taken off a resource that is being deleted, and one of its name is made, before the garbage collector comes.

        What had no owner any more is nobody's then: a person has to end it (`_heal`).
        """
        present = self.world.resource()
        if present is not None:
            self.world.delete()
            left = [body for kind in ("Pod", "Job") for body in self.world.ours(kind) if not body["metadata"].get("ownerReferences")]
            self.world.ledger.orphans.update(body["metadata"]["uid"] for body in left)
            self.world.memory.edit(present, {"metadata": {"finalizers": []}})
            self.world.apply({key: value for key, value in present["spec"].items() if value is not None})
        self.world.run(seconds)

    @rule(seconds=seconds)
    def orphan(self, seconds: int) -> None:
        """`kubectl delete --cascade=orphan`: the garbage collector takes the owner off our pods and Jobs, at once."""
        self.world.delete(cascade="orphan")
        self.world.run(seconds)
