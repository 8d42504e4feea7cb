"""Numbers of things in messages, and names on the wire. The operator has `names` of its own: it imports nothing from here."""

SIBILANTS = ("s", "x", "ch", "sh")
HARD = ("epoch",)  # their last sound is a k


def plural(number: int, thing: str) -> str:
    """The noun that follows a number: `shard` after 1, `shards` after 0 and 2. The last word of `thing` is regular, in lower case."""
    if number == 1:
        return thing
    if thing.endswith("y") and thing[-2:-1] not in "aeiou":
        return f"{thing[:-1]}ies"
    return f"{thing}{'es' if thing.endswith(SIBILANTS) and not thing.endswith(HARD) else 's'}"


def counted(number: int, thing: str) -> str:
    """`1 batch`, `3 batches`."""
    return f"{number} {plural(number, thing)}"


def camel(name: str) -> str:
    """`last_beat` → `lastBeat`."""
    head, *rest = name.split("_")
    return head + "".join(map(str.title, rest))
