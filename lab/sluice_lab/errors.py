"""Errors of an unknown machine. Their messages say what a person can do."""


class LabError(RuntimeError):
    """A step is impossible on this machine; the message says what to do."""


class MissingPartError(LabError):
    """Something that has to be installed or built first is not on this machine."""


class CommandFailedError(LabError):
    """A program ended with an error; the message has the end of its output."""
