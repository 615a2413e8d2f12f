"""Numbers of groups as the smap paper tells of them, all else by chance: inputs of Fig. 16 to 18 and 20.

It prints 552, 1846, 2117 and 2837 groups for one to four attributes, and that all other relations have 552 to 2836
(Sections 5.2 and 8.1). Many numbers agree with that, so experiments draw them: uniformly from all that do.
"""

from __future__ import annotations

import numpy as np

from experiments.kit.streams import LETTERS, PRINTED, subsets

LEAST, MOST = PRINTED[0], PRINTED[-1] - 1  # of all relations but ABCD
CHAIN = dict(zip(("A", "AB", "ABC", "ABCD"), PRINTED, strict=True))
TOPS = ("ABD", "ACD", "BCD")  # one of them has the 2836
SWEEPS = 40  # over all relations between two draws

GroupCounts = dict[str, float]


def drawn_counts(draws: int, seed: int = 7) -> list[GroupCounts]:
    """Numbers of groups by letters: the chain is the printed one, the largest of the others 2836, none has fewer
    groups than a part of it.

    One number after the other is drawn from what the others leave it, over and over (Gibbs sampling), from a start in
    which all are as small as they can be.
    """
    rng = np.random.default_rng(seed)
    free = [name for name in subsets(LETTERS) if name not in CHAIN]
    below = {name: [other for other in subsets(LETTERS) if set(other) < set(name)] for name in free}
    above = {name: [other for other in subsets(LETTERS) if set(name) < set(other)] for name in free}
    found = []
    for number in range(draws):
        top = TOPS[number % len(TOPS)]
        counts = {**CHAIN, top: MOST}
        for name in sorted(set(free) - {top}, key=len):
            counts[name] = max([LEAST, *(counts[part] for part in below[name] if part in counts)])
        for _ in range(SWEEPS):
            for name in free:
                if name != top:
                    low = max(LEAST, *(counts[part] for part in below[name])) if below[name] else LEAST
                    high = min(MOST, *(counts[whole] for whole in above[name]))
                    counts[name] = int(rng.integers(low, high + 1))
        found.append({name: float(counts[name]) for name in subsets(LETTERS)})
    return found
