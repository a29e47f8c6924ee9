"""Whether training and held-out rows can tell copies: a random split, of rows unlike one another.

Each check of the split is exact: its false alarms have a probability of at most 1e-6.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy  # its submodules are loaded at their first use
from numpy.typing import NDArray

from genbounds._text import count, percent
from genbounds.core import close_rows
from genbounds.core.checks import COARSE, rounding_step
from genbounds.diagnostics import warn_of
from genbounds.estimators import row_ids
from genbounds.explain._exact import Excess, least_visible, upper_tails
from genbounds.explain._nearest import Neighbours, Pool
from genbounds.results import Diagnostic, Severity
from genbounds.samples import Sample

FALSE_ALARM = 1e-6
"""Of each check that the split is random."""

LOOKED_AT = 2000
"""Real rows whose own neighbours are looked for, at most."""

CLOSE_SHARE = 0.01
"""A near copy is as near to a real row as only so many real rows are to another."""

TWINS = (5, 20)
"""A row with so many near twins has no small ratio; so many neighbours show that they are near."""

RARE = 1e-4
"""Probability that a row of a smooth distribution looks as if it had so many near twins."""

TIGHT = 0.05
"""Of the way to the twentieth row: nearer than this is a twin, whatever the sizes of clusters."""

SPOILT = 0.02
"""Share of such rows from which on a warning is given."""

SHARED = 0.1
"""Share of the held-out rows that were copied from the training rows, from which on too many copies
stay hidden."""

FEW = 0.01
"""Share of the training rows; copies of fewer rows need not be visible."""


def files(fake: NDArray[Any], pool: Pool) -> list[Diagnostic]:
    """Warn of rows that are in two of the files, and of rows that repeat."""
    train, heldout = pool.ids
    ids = row_ids(fake.astype(pool.rows.dtype, copy=False))
    doubts = []
    same = np.array_equal(np.sort(ids), np.sort(train))
    if same and close_rows.judge_common_rows(ids, train)[1] == "unreliable":
        doubts.append(warn_of("training-rows-generated"))
    leaked, severity = _heldout_rows(fake, ids, pool)
    if severity is not None:
        doubts.append(
            warn_of("held-out-rows-generated", severity=severity, leaked=leaked, rows=ids.size)
        )
    shared = int(np.isin(heldout, train).sum())
    if shared:
        copied = close_rows.judge_common_rows(heldout, train)[1] == "unreliable"
        many = copied and shared >= SHARED * heldout.size
        seriousness: Severity = "unreliable" if many else "caution"
        doubts.append(
            warn_of("held-out-rows-trained", severity=seriousness, shared=shared, rows=heldout.size)
        )
    repeated = train.size - np.unique(train).size
    if repeated and pool.unit_name == "row":
        doubts.append(warn_of("repeated-training-rows", repeated=repeated, rows=train.size))
    if (step := rounding_step(fake)) > COARSE:
        doubts.append(warn_of("rounded-features", whose="generated ", step=step))
    return doubts


def _heldout_rows(
    fake: NDArray[Any], ids: NDArray[np.uint64], pool: Pool
) -> tuple[int, Severity | None]:
    """Count the generated rows that are held-out rows, and no training rows; judge them."""
    train, heldout = pool.ids
    new, unseen = ids[~np.isin(ids, train)], heldout[~np.isin(heldout, train)]
    leaked, severity = close_rows.judge_common_rows(new, unseen)
    if leaked and severity is None:
        held = (pool.usable & ~pool.trained)[pool.unit]
        real_ids = np.where(held, heldout[np.where(held, pool.source, 0)], np.uint64(0))
        samples = ((ids, pool.as_rows(fake)), (real_ids, pool.rows))
        if close_rows.has_new_entries(new, unseen, samples):
            severity = "caution"
    return leaked, severity


def strata(train: Any, heldout: Any) -> list[Diagnostic]:
    """Warn where the classes of training and held-out rows differ by more than chance, or may.

    For each class the number of training rows is hypergeometric; Bonferroni over classes.
    """
    one, two = (x.strata if isinstance(x, Sample) else None for x in (train, heldout))
    if one is None and two is None:
        return []
    if one is None or two is None:
        told, other = ("held-out", "training") if one is None else ("training", "held-out")
        return [warn_of("strata-of-one", told=told, other=other)]
    classes, code = np.unique(np.concatenate([one, two]), return_inverse=True)
    sizes, drawn = np.bincount(code), np.bincount(code[: one.size], minlength=classes.size)
    chance = scipy.stats.hypergeom(code.size, one.size, sizes)
    tails = np.minimum(chance.cdf(drawn), chance.sf(drawn - 1))
    chance = 2.0 * classes.size * tails.min()
    return [warn_of("shares-differ")] if chance <= FALSE_ALARM else []


def real_rows(pool: Pool, closer: float) -> tuple[float, float, list[Diagnostic]]:
    """Look at the neighbours of real rows: how near is a near copy, is the split a random one.

    Returns
    -------
    float
        Largest ratio of a near copy: `closer`, or what `CLOSE_SHARE` of the real rows would reach
        if each were surrounded evenly.
    float
        Median ratio of the real rows.
    list of Diagnostic

    Notes
    -----
    In k local dimensions the ratio r of the first and fifth distance has r^k ~ Beta(1, 4); k is
    taken from the median, which near twins do not move.
    """
    looked = np.arange(min(LOOKED_AT, max(len(pool.rows) // 4, 1)))  # the first of a random order
    own = pool.unit[looked]
    nearest = Neighbours(pool.rows[looked], pool, (1, *TWINS), own)
    median = float(np.median(nearest.ratio))
    fifth = scipy.stats.beta(1, 4)
    power = math.log(fifth.ppf(CLOSE_SHARE)) / math.log(fifth.median())
    limit = min(closer, median**power)
    return limit, median, [*_twins(nearest, median, pool), *_split(own, nearest, pool)]


def _twins(found: Neighbours, median: float, pool: Pool) -> list[Diagnostic]:
    """Warn of rows whose fifth neighbour is far nearer than the twentieth.

    With k local dimensions (d5/d20)^k ~ Beta(5, 15). Clusters of a distribution look the same, but
    for two things: they are not as tight, and not of one size.
    """
    dimension = math.log(scipy.stats.beta(1, 4).median()) / math.log(min(max(median, 1e-9), 0.999))
    fifth, twentieth = found.distances[:, 1], found.distances[:, 2]
    narrow = scipy.stats.beta(5, 15).ppf(RARE) ** (1.0 / dimension)
    near, tight = (fifth < min(narrow, part) * twentieth for part in (0.5, TIGHT))
    # Whether most real rows have as many others near to them, and more than a few.
    one = np.sort(np.unique(pool.unit, return_index=True)[1])  # of a group, of equal rows
    logs = close_rows.log_distances(pool.rows, one)
    of_one_size = logs is not None and close_rows.clusters(logs, one.size)[1] >= TWINS[0]
    share = float((near if of_one_size else tight).mean())
    return [warn_of("real-twins", share=percent(round(share, 3)))] * (share >= SPOILT)


def _split(own: NDArray[np.intp], found: Neighbours, pool: Pool) -> list[Diagnostic]:
    """Put held-out rows in the place of generated ones: do they hit too few training rows, or many.

    Given the labels of the rows that are looked at, those of the others are a random choice.
    """
    free = pool.usable.copy()
    free[own] = False
    held = pool.usable[own] & ~pool.trained[own]
    hit = np.unique(pool.unit[found.row[held]])
    hit = hit[free[hit]]
    total, trained = int(free.sum()), int((free & pool.trained).sum())
    count_trained = int(pool.trained[hit].sum())
    tails = upper_tails(total, trained, hit.size)
    many = tails[count_trained]
    few = 1.0 - (tails[count_trained + 1] if count_trained < hit.size else 0.0)
    if 2.0 * min(few, many) > FALSE_ALARM:
        return []
    doubt = warn_of(
        "no-random-split",
        what=f"{pool.unit_name}s",
        others="one another" if few < many else "training rows",
        nearest=count(hit.size, "nearest row"),
        trained=count_trained,
        expected=hit.size * trained / total,
    )
    return [doubt]


def swapped(near: Excess, every: Excess, pool: Pool) -> list[Diagnostic]:
    """Warn where held-out rows are hit too often: the model knows them."""
    total, trained = pool.sizes
    chance = min(
        upper_tails(total, total - trained, part.hit)[part.hit - part.trained]
        for part in (near, every)
    )
    return [warn_of("nearer-to-held-out")] if 2.0 * chance <= FALSE_ALARM else []


def size(pool: Pool, alpha: float) -> list[Diagnostic]:
    """Warn where too few held-out rows hide rare copies."""
    total, trained = pool.sizes
    needed = least_visible(total, trained, alpha)
    if needed <= FEW * trained:
        return []
    heldout = count(total - trained, f"held-out {pool.unit_name}")
    needs = count(needed, f"copied {pool.unit_name}")
    return [warn_of("few-held-out", heldout=heldout, trained=trained, needed=needs)]
