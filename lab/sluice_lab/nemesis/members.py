"""The epochs of a pool's member. Pure.

One process of a pool begins several runs of a member, one after the other, and each takes the lease again. So the pod alone does not name an epoch:
the generation of the lease does, beside it. The pipeline does not know it, but the sampled table says when each generation began.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from sluice_lab.nemesis.history import History
from sluice_lab.nemesis.takeover import Sample


def by_generation(found: History, samples: Sequence[Sample]) -> tuple[History, list[Sample]]:
    """History and samples in which an epoch is a pod and a generation.

    What a pod did before its first sample counts to its first generation. A task of an earlier run that reads late counts to the later run. It is
    judged as strictly there: the same time has to lie between two tasks of a batch.
    """
    begins: defaultdict[str, list[tuple[float, int]]] = defaultdict(list)
    for sample in samples:
        known = begins[sample.epoch]
        if not known or known[-1][1] != sample.generation:
            known.append((sample.at, sample.generation))

    def named(epoch: str, at: float) -> str:
        known = begins.get(epoch)
        if not known:
            return epoch
        return f"{epoch}#{known[max(0, bisect_right(known, at, key=lambda one: one[0]) - 1)][1]}"

    invocations = tuple(replace(one, epoch=named(one.epoch, one.at)) for one in found.invocations)
    reads = tuple(replace(one, epoch=named(one.epoch, one.first)) for one in found.reads)
    return History(invocations, reads), [replace(one, epoch=f"{one.epoch}#{one.generation}") for one in samples]


def unchanged(found: History, samples: Sequence[Sample]) -> tuple[History, list[Sample]]:
    """Both as they are: a driver's pod is an epoch."""
    return found, list(samples)
