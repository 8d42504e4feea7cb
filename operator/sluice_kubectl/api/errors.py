"""Errors for people: each says what to do next, and its exit code what a script may do."""

from __future__ import annotations

REFUSED, LATER, FAILED = 65, 75, 1


class CommandError(Exception):
    """A command ends with this message and exit code."""

    code = FAILED


class NothingThere(CommandError):
    """No such resource, pod or definition; or no rights to see it."""

    code = REFUSED


class ChangedMeanwhile(CommandError):
    """The condition of a write failed. Nothing was written."""

    code = LATER
