"""The commands: options in, screens or JSON out, exit codes.

Each command reads, makes a view, and shows it or writes one patch.
Decisions are in `views`, and calls in `api`.
"""
