"""How a refused migration can continue: the options to add to the same command, for a person to decide. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sluice_checkpoints.formats.attributes import SHARD_ID, UnknownAttribute
from sluice_checkpoints.formats.reader import Problem
from sluice_checkpoints.plurals import counted

PLACES = "=trim-horizon (or =END, or =SEQUENCE, the number of the last record that was read)"
NAMED = 3  # shards in one line of advice


def for_rows(problems: Sequence[Problem]) -> str:
    """For rows that were not understood; "" where only the source itself can be corrected."""
    unknown = dict.fromkeys(name for p in problems if isinstance(p.why, UnknownAttribute) for name in p.why.names)
    shards = (i for p in problems if p.row is not None and not isinstance(p.why, UnknownAttribute) for i in SHARD_ID.findall(p.row)[-1:])
    return "".join(filter(None, (_ignoring(unknown), placing(shards))))


def _ignoring(names: Iterable[str]) -> str:
    options = " ".join(f"--ignore-attribute '{name}'" for name in names)
    told = f"{options} (in the resource: spec.migrateFrom.ignoreAttributes)"
    return f". If no position depends on these attributes, run the same command again with {told}" if options else ""


def placing(shards: Iterable[str]) -> str:
    """For shards whose position the source does not contain; "" for none."""
    ids = list(dict.fromkeys(shards))
    options = " ".join(f"--place {i}{PLACES if i == ids[0] else '=…'}" for i in ids[:NAMED])
    rest = f" and so on for {len(ids) - NAMED} more" if len(ids) > NAMED else ""
    told = f"{options}{rest} (in the resource: spec.migrateFrom.places)"
    return f". To set yourself where a shard starts, run the same command again with {told}" if ids else ""


def if_others_agree(agreeing: int, wrong: Sequence[str]) -> str:
    """For rows that cannot be of the stream, by their shards: `agreeing` is how many others have a possible position."""
    if not agreeing:
        return ". No other row has a position that fits this stream"
    fits = "has a position that fits" if agreeing == 1 else "have positions that fit"
    return f". {counted(agreeing, 'other row')} {fits} this stream{placing(wrong)}"
