"""Errors, named by what the caller does next. Exit codes follow `docs/interfaces.md`."""

from __future__ import annotations


class SluiceError(Exception):
    """The base of all errors that Sluice raises on purpose; `exit_code` is what a program ends with if it is not handled."""

    exit_code = 1


class Refused(SluiceError):
    """Input that Sluice does not act on: the message names the field, row or attribute and what to do. Nothing was written."""

    exit_code = 65


class AccessDenied(Refused):
    """AWS does not allow a call: the role of the pod lacks a permission."""


class SourceActive(SluiceError):
    """The consumer whose table is to be taken over still works: stop it and come again."""

    exit_code = 75


class LeaseHeld(SluiceError):
    """Another epoch, or another migrator, holds the lease and its heartbeat moves: come again later."""

    exit_code = 75


class Fenced(SluiceError):
    """A later epoch has taken over: stop at once, write nothing more."""

    exit_code = 76


class LostRace(SluiceError):
    """Another attempt of this very task was faster, or a later batch is open: this one ends quietly, because the other does its work."""


class ProtocolViolation(SluiceError):
    """The table holds what no correct writer leaves behind. Nothing is guessed: the epoch ends, and a person decides."""


class ServiceUnavailable(SluiceError):
    """DynamoDB or Kinesis did not answer within the time limit. Whether the write took effect is unknown."""
