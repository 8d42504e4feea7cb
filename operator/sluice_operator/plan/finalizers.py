"""What keeps an object that was deleted, and the command that takes it off. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice_operator.names import printable

if TYPE_CHECKING:
    from sluice_operator.state.objects import Job, Pod

OF_KUBERNETES = {"foregroundDeletion", "orphan"}  # its garbage collector takes them off
NO_FINALIZERS = '{"metadata":{"finalizers":null}}'
NAMES = 200  # characters of the finalizers in a message


def taken_off_by(namespace: str, kind: str, item: Pod | Job) -> str:
    """How the finalizers of other programs are taken off; "" if it has none."""
    names = printable(", ".join(name for name in item.finalizers if name not in OF_KUBERNETES))
    if not names:
        return ""
    command = f"kubectl patch {kind} {item.name} -n {namespace} --type=merge -p '{NO_FINALIZERS}'"
    return f"remove its finalizers ({names[:NAMES]}{'…' * (len(names) > NAMES)}): {command}"
