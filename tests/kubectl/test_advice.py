"""What a condition advises can be done: each advice names a command, and each command is one that there is."""

from __future__ import annotations

import re
from functools import cache

import click
import pytest

from sluice_lab.site.prose import commands
from sluice_operator.plan.advice import FAILURES, OTHERS, Advice
from sluice_operator.plan.known_words import OF_PROGRAMS

COMMAND = re.compile(r"`((?:kubectl|sluice|aws|helm) [^`]+)`")
NOTHING_TO_DO = {
    "MigrationLost", "ResetLost", "StrayDriver", "StrayJob", "WaitingOutLease", "Interrupted", "Killed", "Evicted", "DriverLost", "Forced",
    "StandbyAwaited",
}  # fmt: skip
"""The operator does all of it. A new reason is in this list, or its advice names a command."""
IN_THE_MESSAGE = {"PodHeld"}
"""The message before the advice ends with the command, which names the pod (`plan.finalizers`)."""
ADVICE = {**{reason: FAILURES.get(reason, OTHERS) for reason in sorted(OF_PROGRAMS)}, **FAILURES, "another reason": OTHERS}


@cache
def ours() -> dict[str, click.Command]:
    return {name: command for name, command in commands() if name.startswith("sluice ")}


def wrong(line: str) -> str:
    """Why a line cannot be typed; empty if it can. Of other programs only the word after the name is looked at."""
    if not line.startswith(("sluice ", "kubectl sluice ")):
        return "" if re.match(r"(kubectl (apply|delete|annotate|describe|get|patch)|aws kinesis|helm upgrade)\b", line) else "not known here"
    words = line.removeprefix("kubectl ").split()
    for length in range(len(words), 1, -1):
        if (command := ours().get(" ".join(words[:length]))) and not isinstance(command, click.Group):
            known = {option for each in command.params for option in each.opts}
            return " ".join(word for word in words[length:] if word.startswith("-") and word not in known)
    return "no such command"


@pytest.mark.parametrize("reason", ADVICE)
def test_an_advice_names_a_command_that_there_is(reason: str) -> None:
    named = COMMAND.findall(ADVICE[reason].do)
    assert named or reason in NOTHING_TO_DO | IN_THE_MESSAGE
    assert [(line, why) for line in named if (why := wrong(line))] == []


def test_where_there_is_nothing_to_do_nothing_is_advised() -> None:
    assert {reason for reason, advice in FAILURES.items() if advice == Advice(advice.does)} == NOTHING_TO_DO


@pytest.mark.parametrize("line", ["kubectl sluice look NAME", "kubectl sluice logs NAME --rolle driver", "sluice dead-letters", "kubectl undo"])
def test_a_command_that_there_is_not_is_found(line: str) -> None:
    assert wrong(line)
