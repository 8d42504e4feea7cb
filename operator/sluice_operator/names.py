"""Names on the wire that more than one room writes or reads. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

GROUP = "sluice.dev"
FINALIZER = f"{GROUP}/operator"
CONFIG = f"{GROUP}/config"
EXECUTOR_TEMPLATE = f"{GROUP}/executor-template"
"""Annotations of a driver's pod that are files in it."""
ARGO = {"argocd.argoproj.io/ignore-restart-policy": "true"}
"""The annotation that has Argo CD ignore the restart policy of a pod."""
END_REACHED = "EndReached"
"""The reason with which a driver ends that has reached `spec.until`, and that of Ready from then on."""
LETTER_PLACES = ("path", "sqs", "kinesis")
"""Fields of `onError.deadLetter`: one of them has to be set, and only one."""
STREAM_ARN = r"arn:aws[a-z-]*:kinesis:[a-z0-9][a-z0-9-]{0,30}[a-z0-9]:[0-9]{12}:stream/[a-zA-Z0-9_.-]{1,128}"
"""The form of a stream's ARN: its fourth part is the region, and its name follows `stream/`."""
SILENT_SECONDS = 90
"""A driver that has not reported for so long is called silent; drivers report at least every 30 s."""


UNPRINTABLE = "\N{REPLACEMENT CHARACTER}"


def printable(text: str) -> str:
    """The text as one line that moves no cursor: a space for each line break and tab, U+FFFD for each control, escape or bidi override.

    As long as before. For words of strangers, wherever they enter a status, an event or a screen.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else " " if char.isspace() else UNPRINTABLE for char in text)


def default_table(namespace: str, name: str) -> str:
    """The checkpoint table of a resource that names none."""
    return f"sluice_{namespace}_{name}"


def camel(name: str) -> str:
    """`last_good_spec` → `lastGoodSpec`: names on the wire are camelCase."""
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


def clock(time: datetime, now: datetime) -> str:
    """`13:00:00Z`; of another day than now's `2027-11-26T13:00:00Z`. Both times in UTC."""
    return f"{time:%H:%M:%SZ}" if time.date() == now.date() else f"{time:%Y-%m-%dT%H:%M:%SZ}"


def lasting(millis: int) -> str:
    """`13s`, `2m13s`, `3h05m`, `2d04h`: two units, as kubectl shows ages."""
    seconds = millis // 1000
    for unit, size, below, smaller in (("d", 86_400, "h", 3_600), ("h", 3_600, "m", 60), ("m", 60, "s", 1)):
        if seconds >= size:
            return f"{seconds // size}{unit}{seconds % size // smaller:02}{below}"
    return f"{seconds}s"


def counted(number: int, thing: str) -> str:
    """`1 executor`, `3 executors`."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def region_of(arn: str) -> str:
    """The region in the ARN of a stream; "" if it is not one."""
    return arn.split(":")[3] if re.fullmatch(STREAM_ARN, arn) else ""
