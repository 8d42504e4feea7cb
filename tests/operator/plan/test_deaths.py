"""A member is put out of its pool if it alone is named, death after death (docs/pools.md, "A member that ends the process")."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest
from plan.views import NOW, attempt, ended, seconds, view

from sluice_operator.plan import deaths
from sluice_operator.plan.deaths import Death, counted, death_of, places, returned, suspects
from sluice_operator.state.objects import Observed, Pod
from sluice_operator.state.seats import MemberVersion
from sluice_operator.state.status import DeathsStatus, Status

MOST = 3
MEMBERS = {f"uid-{name}": MemberVersion(name, "h1") for name in "abcdefgh"}


@dataclass
class Pool:
    count: Callable[..., DeathsStatus] = counted
    members: dict[str, MemberVersion] = field(default_factory=lambda: dict(MEMBERS))
    status: DeathsStatus | None = None
    number: int = 0

    def dies(self, *named: str, worked: float = 60) -> Pool:
        """Each of these strings names members, a letter each, in one death."""
        for names in named:
            self.number += 1
            death = Death(f"pod-{self.number}", seconds(self.number), timedelta(seconds=worked), frozenset(names))
            self.status = self.count(self.status, death, self.members, MOST)
        return self

    @property
    def out(self) -> str:
        return "".join(one.name for one in self.status.out) if self.status else ""

    @property
    def numbers(self) -> dict[str, int]:
        """Of the others, the deaths in a row."""
        return {one.name: one.deaths for one in self.status.named} if self.status else {}


Case = tuple[str, Iterable[str], str, dict[str, int]]
CASES: list[Case] = [
    ("one that each death names is put out with the third", ["a", "a", "a"], "a", {}),
    ("not with the second", ["a", "a"], "", {"a": 2}),
    ("a death that does not name it clears it", ["a", "a", "b", "a"], "", {"a": 1}),
    ("a death that names nobody clears all", ["a", "a", ""], "", {}),
    ("one that is always busy is cleared by the deaths of others", ["ab", "a", "b", "a", "a"], "", {"a": 2}),
    ("two of eight are put out together", ["ab", "ab", "abc"], "ab", {"c": 1}),
    ("three are too many: the next death decides", ["abc", "abc", "abc"], "", {"a": 3, "b": 3, "c": 3}),
    ("the next death names fewer", ["abc", "abc", "abc", "b"], "b", {}),
    ("those that are out count: there is no room for two more", ["a", "a", "a", "bc", "bc", "bc"], "a", {"b": 3, "c": 3}),
    ("there is for one", ["a", "a", "a", "b", "b", "b"], "ab", {}),
    ("one that is out is named by nothing: its driver is another one", ["a", "a", "a", "ab"], "a", {"b": 1}),
    ("a name that no member has counts for nothing", ["az", "az", "az"], "a", {}),
]


@pytest.mark.parametrize(("named", "out", "numbers"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_deaths_in_a_row(named: Iterable[str], out: str, numbers: dict[str, int]) -> None:
    pool = Pool().dies(*named)
    assert (pool.out, pool.numbers) == (out, numbers)


def test_what_is_a_death_of_a_pools_process() -> None:
    """It ended by itself, with a code that does not say why."""

    def dies(pod: Pod, stopping: str | None = None) -> bool:
        status = Status(observed_generation=1, driver=attempt(stopping=stopping))
        return death_of(view(status=status, observed=Observed(drivers=(pod,)))) is not None

    assert [code for code in (0, 1, 2, 64, 65, 75, 76, 137) if dies(ended(code))] == [1, 2, 64, 137]
    assert not dies(ended(1), stopping="Suspended")
    assert not dies(ended(1, gone_by=NOW))
    assert not dies(ended(1, "Evicted"))


def test_a_death_counts_once() -> None:
    """The operator sees the pod of a death many times, and another operator sees it again."""
    pool = Pool().dies("a", "a")
    assert pool.status is not None
    again = Death(pool.status.pod, seconds(9), timedelta(0), frozenset("a"))
    assert counted(pool.status, again, pool.members, MOST) == pool.status


@pytest.mark.parametrize(("worked", "out"), [(3599, "a"), (3600, "")])
def test_an_hour_of_work_clears_all(worked: float, out: str) -> None:
    pool = Pool().dies("a", "a").dies("a", worked=worked)
    assert (pool.out, pool.numbers) == (out, {} if out else {"a": 1})


@pytest.mark.parametrize(("members", "out"), [(0, 0), (1, 0), (2, 1), (7, 1), (8, 2), (40, 10)])
def test_a_quarter_may_be_out_and_one_at_least(members: int, out: int) -> None:
    assert places(members) == out


@pytest.mark.parametrize(
    "changed",
    [{"uid-a": MemberVersion("a", "h2")}, {"uid-a": MemberVersion("a", "h1", "now")}, {"uid-2": MemberVersion("a", "h1")}, {}],
    ids=["spec", "restart", "created again", "gone"],
)
def test_a_member_returns_when_it_changes(changed: dict[str, MemberVersion]) -> None:
    pool = Pool().dies("a", "a", "a")
    assert pool.status is not None
    assert returned(pool.status, pool.members) == pool.status
    del pool.members["uid-a"]
    pool.members |= changed
    assert returned(pool.status, pool.members).out == ()
    pool.dies("a")
    assert (pool.out, pool.numbers) == ("", {"a": 1} if changed else {})


def test_what_is_known_of_one_that_was_put_out() -> None:
    pool = Pool()
    pool.members["uid-a"] = MemberVersion("a", "h1", "yesterday")
    pool.dies("a", "a", "a")
    assert pool.status is not None
    (one,) = pool.status.out
    assert (one.uid, one.deaths, one.since, one.spec_hash, one.restart) == ("uid-a", 3, seconds(3), "h1", "yesterday")


def test_the_suspects_are_those_that_too_many_others_protect() -> None:
    pool = Pool().dies("abc", "abc")
    assert suspects(pool.status, MOST) == suspects(None, MOST) == ()
    assert suspects(pool.dies("abcd").status, MOST) == ("a", "b", "c")


@pytest.mark.parametrize("seed", range(30))
def test_a_killer_among_busy_members_is_put_out_and_the_others_are_not_used_up(seed: int) -> None:
    """Each death names the killer, and each other one as often as it is busy, up to nine times in ten. So the killer is out with the first ones."""
    chance = random.Random(seed)  # noqa: S311 - to repeat it
    busy = {one.name: chance.choice((0.0, 0.5, 0.9)) for one in MEMBERS.values()} | {"c": 1.0}
    pool, rows = Pool(), list[str]()
    while "c" not in pool.out and len(rows) < 300:
        rows.append("".join(name for name, share in busy.items() if name not in pool.out and chance.random() < share))
        before = pool.out
        pool.dies(rows[-1])
        assert all(name in row for name in set(pool.out) - set(before) for row in rows[-MOST:])
        assert len(pool.out) <= places(len(MEMBERS))
    assert "c" in pool.out


# -- mutants: the rule with one part left out fails a case ---------------------------------------------------------------------------


def _in_total(before: DeathsStatus | None, death: Death, members: deaths.Versions, most: int) -> DeathsStatus:
    """Deaths that did not name a member do not clear it."""
    after = counted(before, death, members, most)
    there = {one.uid for one in after.named} | {one.uid for one in after.out}
    return replace(after, named=(*after.named, *(one for one in before.named if one.uid not in there))) if before else after


def _all_suspects(before: DeathsStatus | None, death: Death, members: deaths.Versions, most: int) -> DeathsStatus:
    """However many reached the limit."""
    many = {f"more-{number}": MemberVersion(f"more-{number}", "") for number in range(100)}
    return counted(before, death, {**members, **many}, most)


def _without_those_out(before: DeathsStatus | None, death: Death, members: deaths.Versions, most: int) -> DeathsStatus:
    """Who is out takes no place."""
    after = counted(replace(before, out=()) if before else None, death, members, most)
    return replace(after, out=(*(before.out if before else ()), *after.out))


def _the_last_alone(before: DeathsStatus | None, death: Death, members: deaths.Versions, most: int) -> DeathsStatus:
    """Whoever reached the limit is put out one by one."""
    one = min(death.named, default="")
    return counted(before, replace(death, named=frozenset(one)), members, most)


@pytest.mark.parametrize("mutant", [_in_total, _all_suspects, _without_those_out, _the_last_alone])
def test_a_case_notices_a_rule_with_a_part_left_out(mutant: Callable[..., DeathsStatus]) -> None:
    pools = [(Pool(mutant).dies(*named), out, numbers) for _, named, out, numbers in CASES]
    assert any((pool.out, pool.numbers) != (out, numbers) for pool, out, numbers in pools)
