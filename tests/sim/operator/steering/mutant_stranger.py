"""Mutants that a stranger brings to light: a user or an admission policy that labels, copies, annotates, refuses and forges."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mutants import Patch
from steering.mutant import do, mutant

from sluice_operator.apply import execute as apply
from sluice_operator.cluster import client
from sluice_operator.observe import ownership, parse
from sluice_operator.plan import driver_succession, jobs, known_words, live_read_policy, write_policy
from sluice_operator.plan import rules as plan
from sluice_operator.run import live_read, reconcile
from sluice_operator.state import serialization
from sluice_operator.state.status import Phase
from sluice_operator.state.view import View, progress

# -- a stranger --------------------------------------------------------------------------------------------------------------------


@mutant("a report that flaps is written as often as it does", "no_hot_loop", do("flap", times=40))
def flapping_is_news(patch: Patch) -> None:
    """A driver whose warnings come and go costs a read, a list and two writes a second."""
    patch.setattr(write_policy, "MOST_AT_ONCE", 10**6)


@mutant("a label that is no number is read as one", "no_faults", do("label", role="driver", attempt="abc", owner=None, seconds=5))
def labels_are_believed(patch: Patch) -> None:
    """Every pass ends with an error, the deletion's too, and the finalizer stays."""
    patch.setattr(parse, "_attempt", lambda label: int(label or 0))


@mutant("a pod is ours by its labels", "health_is_true", do("copy", seconds=20))
def labels_are_owners(patch: Patch) -> None:
    """A copy of the driver is waited for, before everything else and for ever."""
    patch.setattr(parse, "own", lambda _resource, _status, seen: seen)


@mutant(
    "a Job is ours by its labels", "spec_reached", do("label_job", seconds=5), do("edit", edit="another source", seconds=40), migrating=True, run=0
)
def jobs_by_labels(patch: Patch) -> None:
    """Before each new try it is waited for."""
    real = ownership.own
    patch.setattr(parse, "own", lambda resource, status, seen: replace(real(resource, status, seen), jobs=seen.jobs))


@mutant(
    "a driver of an earlier resource of the name is not ours",
    "two_drivers_at_most",
    do("edit", edit="batch 9", seconds=20),
    do("orphan_by_hand", seconds=9),
)
def earlier_lives_are_strangers(patch: Patch) -> None:
    """The finalizer was taken off by hand, and the resource made again, before its driver was gone."""
    patch.setattr(ownership, "_is_controlled", lambda resource, item: item.owner == resource.uid)


@mutant("a driver without its owner is not ours", "exits_are_kept", do("orphan", seconds=9))
def orphans_are_strangers(patch: Patch) -> None:
    """The resource goes, and the driver consumes on."""
    patch.setattr(ownership, "_adopted", lambda _resource, item: item)
    patch.setattr(ownership, "_is_driver", lambda resource, _status, pod: ownership._is_controlled(resource, pod))


@mutant("a Job without its owner is left to the garbage collector", "nothing_leaks", do("orphan", seconds=9), migrating=True)
def orphaned_job(patch: Patch) -> None:
    """Which does not collect it: the name is taken when the resource is made again."""
    real = jobs.stop
    patch.setattr(jobs, "stop", lambda view, *words: real(view, *words) if any(job.state == "Active" for job in view.observed.jobs) else None)


@mutant("the uid of the resource gives its driver up", "drained_not_killed", do("force_wrongly", what="resource", seconds=5))
def force_by_owner(patch: Patch) -> None:
    """An easy slip ends every driver, one after the other."""

    def force(view: View) -> Any:
        pods = [pod for pod in view.observed.drivers if view.resource.force in {pod.uid, pod.owner}]
        return progress(Phase.DRAINING, "Forced", "", *(apply.DeletePod(pod.name, pod.uid, 0) for pod in pods)) if pods else None

    patch.setattr(plan, "RULES", (force, *plan.RULES[1:]))


@mutant(
    "a pod that was given up is given up again",
    "no_hot_loop",
    do("give_up_held", seconds=90),
)
def force_for_ever(patch: Patch) -> None:
    """A finalizer that is not ours keeps it: a deletion a second."""
    real = parse.pod
    patch.setattr("sluice_operator.observe.cache.parse.pod", lambda raw: replace(real(raw), forced=False))


@mutant(
    "whatever cannot be processed is taken for a lost race",
    "no_hot_loop",
    do("refuse", what=("patch", "Pod"), answer="Invalid", lasts=100, seconds=1),
    do("scale", replicas=3, seconds=20),
)
def unprocessable_is_conflict(patch: Patch) -> None:
    """An admission policy refuses the new number of executors: a patch a second, of which nobody is told."""
    patch.setattr(client, "_lost_race", lambda _answer: True)
    patch.setattr(client, "DENIED", client.re.compile("(?!)"))


@mutant(
    "a refusal is what its code says",
    "no_hot_loop",
    do("refuse", what=("patch", "KinesisConsumer"), answer="Conflict", lasts=100, seconds=1),
    do("delete", seconds=60, foreground=False, again=False),
)
def codes_are_believed(patch: Patch) -> None:
    """A webhook refuses with 409 that the finalizer goes."""
    patch.setattr(client, "DENIED", client.re.compile("(?!)"))


@mutant("what is about to be done is told as done", "told_is_done", do("scale", replicas=3, seconds=5))
def told_before(patch: Patch) -> None:
    """If it is refused, it is told again with every try."""
    real = reconcile.plan_view
    patch.setattr(reconcile, "plan_view", lambda view: _told_at_once(real(view)))


def _told_at_once(intent: Any) -> Any:
    return replace(intent, events=tuple(replace(event, after=None) for event in intent.events))


@mutant("a driver's words are a reason", "status_fits", do("driver_says", says="long", code=1, times=1, seconds=5))
def any_words(patch: Patch) -> None:
    """4 kB with blanks in a condition."""
    patch.setattr(known_words, "reason", lambda said, otherwise: str(said or otherwise))


@mutant("a driver says that its pod was taken away", "exits_are_kept", do("driver_says", says="evicted", code=1, times=1, seconds=5))
def any_claim(patch: Patch) -> None:
    """And fails without being counted."""
    patch.setattr(known_words, "RESERVED", frozenset())


@mutant("all drains of a report are remembered", "status_fits", do("forge", report="drains", seconds=5))
def all_drains(patch: Patch) -> None:
    """5,000 of them in the status."""
    patch.setattr(serialization, "TEXT", 10**7)
    patch.setattr(parse, "TEXT", 10**7)
    patch.setattr(serialization, "LISTED", 10**7)


@mutant("a report's numbers are taken as they are", "status_fits", do("forge", report="big numbers", seconds=5))
def all_numbers(patch: Patch) -> None:
    """The API server refuses the status from then on."""
    patch.setattr(serialization, "_bounded", lambda report: report)


@mutant("the annotation is read without a bound", "no_faults", do("annotate_rubbish", note="accept-loss", text="digits", seconds=20), run=0)
def all_digits(patch: Patch) -> None:
    """Python converts no number of 5,000 digits: no driver is ever made."""
    patch.setattr(parse, "request", lambda notes, key: parse.text(notes, key, 10**6))


@mutant("a migration ends with its Job alone", "spec_reached", do("inject", sidecar=True), do("wait", seconds=30), migrating=True, run=0)
def jobs_end_alone(patch: Patch) -> None:
    """An injected container keeps the pod: it migrates for ever."""
    patch.setattr(jobs, "outlived", lambda _view, _job: None)


@mutant("a driver that no list shows is gone", "exits_are_kept", do("unlabel", kind="Pod", seconds=30))
def lists_are_believed(patch: Patch) -> None:
    """Its label was taken off, and it consumes on; the next one is made beside it."""
    patch.setattr(live_read, "_named_drivers", lambda _body, _pods: [])


@mutant("a driver is what its label says", "exits_are_kept", do("unlabel", kind="Pod", label="sluice.dev/role", value="x", seconds=30))
def roles_are_believed(patch: Patch) -> None:
    """The role was changed, and it consumes on; the next one is made beside it."""
    patch.setattr(parse, "_role", lambda meta: parse.text(parse.part(meta, "labels"), parse.ROLE) or "")


@mutant(
    "executors are those with the label",
    "two_drivers_at_most",
    do("unlabel", kind="executor", seconds=2),
    do("lose_node", node="a", how="cut", seconds=1),
    do("lose_node", node="b", how="cut", seconds=1),
    do("delete_pod", role="driver", grace=0, seconds=60),
)
def executors_are_listed(patch: Patch) -> None:
    """They work on nodes that nobody reaches, and the next driver is made beside them."""
    patch.setattr(live_read, "_executors_of_spark", lambda _context, _key, _found: [])


@mutant(
    "executors that no watch shows are there until the next live read",
    "health_is_true",
    do("unlabel", kind="executor", seconds=60),
    do("scale", replicas=1, seconds=200),
)
def executors_stay(patch: Patch) -> None:
    """One was taken away, and is waited for: Stalled with "1 executor ready, 1 wanted"."""
    patch.setattr(live_read_policy, "_may_have_left", lambda _view: False)


@mutant(
    "the pod of a Job is that with the label",
    "one_migration",
    do("lose_node", node="a", how="cut", seconds=0),
    do("lose_node", node="b", how="cut", seconds=0),
    do("unlabel", kind="migration", seconds=120),
    migrating=True,
    run=2,
)
def migrators_are_listed(patch: Patch) -> None:
    """Its Job counts as lost while it migrates."""
    patch.setattr(live_read, "_pods_of_jobs", lambda _context, _key, _found: [])


@mutant(
    "a first Job has none before it",
    "one_migration",
    do("source", source="active"),
    do("wait", seconds=30),
    do("unlabel", kind="migration", seconds=1),
    do("orphan_by_hand", seconds=3),
    migrating=True,
    run=0,
)
def first_jobs_are_alone(patch: Patch) -> None:
    """The pod of an earlier resource's second try works on, and the present status names no Job."""
    patch.setattr(live_read, "_begins", lambda _body: False)


@mutant("a Job that no list shows is gone", "spec_reached", do("unlabel", kind="Job", seconds=60), migrating=True, run=3)
def jobs_are_listed(patch: Patch) -> None:
    """Its label was taken off, and it writes on."""
    patch.setattr(live_read, "_named_jobs", lambda _body: [])


@mutant(
    "a Job is read by name only while it runs",
    "spec_reached",
    do("unlabel", kind="Job", seconds=1),
    do("ask", what="retry", number=1),
    migrating=True,
    source="bad",
)
def ended_jobs_are_listed(patch: Patch) -> None:
    """Its pod, which has its label, is waited for; nobody deletes the Job."""
    real = live_read._named_jobs
    patch.setattr(live_read, "_named_jobs", lambda body: real(body) if "Running" in str(body.get("status", {}).get("migration")) else [])


@mutant(
    "of two drivers that a restart names, one is there",
    "nothing_leaks",
    do("hold", held=True, seconds=1),
    do("edit", edit="batch 9", seconds=6),
    do("unlabel", kind="Pod", seconds=1),
    do("orphan", seconds=5),
)
def one_is_named(patch: Patch) -> None:
    """Another program's finalizer holds the first; the second consumes on when the resource is gone."""
    real = live_read._named_drivers
    patch.setattr(live_read, "_named_drivers", lambda body, pods: real(body, pods)[:1])


@mutant(
    "a driver that its executors alone name is gone",
    "nothing_leaks",
    do("call_fails", who=0, what="late", at=3, times=1, seconds=1),
    do("edit", edit="no such image", seconds=2),
    do("lag", who=0, lag=11, seconds=4),
    do("unlabel", kind="Pod", seconds=1),
    do("orphan", seconds=1),
    run=0,
)
def executors_name_nobody(patch: Patch) -> None:
    """A late one, without label and owner: its executors are waited for, and nobody asks it to end."""
    patch.setattr(live_read, "_owners", lambda _pods, _prefix: [])


# -- annotations ---------------------------------------------------------------------------------------------------------------------


@mutant("blank text is a request", "spec_reached", do("note", name="accept-loss", value=" ", seconds=1), do("edit", edit="batch 9", seconds=9))
def blanks_ask(patch: Patch) -> None:
    """A template renders an empty value, and the driver refuses it."""
    patch.setattr(parse, "request", parse.text)


@mutant(
    "an empty request for a restart is one that no driver honours",
    "no_hot_loop",
    do("note", name="restart", value="", seconds=40),
)
def never_honoured(patch: Patch) -> None:
    """Each driver is asked to end as soon as it is seen, for ever."""
    patch.setattr(parse, "request", parse.text)
    real = vars(View)["outdated"].fget
    asks = property(lambda view: real(view) or ("RestartRequested" if view.resource.restart not in {None, view.driver.restart} else None))
    patch.setattr(View, "outdated", asks)


@mutant(
    "a driver that is yet to be made is replaced when a restart is asked for",
    "no_hot_loop",
    do("drain", drain=30),
    do("impatient", seconds=12),
)
def replaced_unseen(patch: Patch) -> None:
    """Attempts are named and never made."""
    patch.setattr(driver_succession, "renewed", driver_succession.following)
