"""What can go wrong on a machine that is not ours to know, said so that a person can act on it."""


class LabError(RuntimeError):
    """A step cannot be done here; the message says what to do about it."""


class CommandFailedError(LabError):
    """A program ended with an error; the message holds its last words."""
