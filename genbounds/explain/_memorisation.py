"""Does a generator copy its training rows? An exact test, a lower bound and a list."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from genbounds._process import threads_for
from genbounds.explain._checks import (
    check_files,
    check_real_rows,
    check_size,
    check_strata,
    check_swapped,
)
from genbounds.explain._nearest import (
    Index,
    Mask,
    Neighbours,
    Pool,
    check_rows,
    neighbours,
    pool_of,
)
from genbounds.explain._result import Memorisation
from genbounds.explain._tests import (
    Suspect,
    careful_excess,
    excess,
    least_visible,
    listed,
    over_fitting,
)
from genbounds.origins import check_same_encoder, origin_of, origin_warnings
from genbounds.samples import features_of
from genbounds.validation import (
    Float,
    check_count,
    check_features,
    check_open_unit,
    check_same_dimension,
    seeded,
)


def memorisation(
    fake: Any,
    train: Any,
    heldout: Any,
    *,
    level: float = 0.95,
    fdr: float = 0.1,
    closer: float = 0.6,
    seed: int = 0,
) -> Memorisation:
    """Test whether a generator copies its training rows, say how many at least, and list them.

    Parameters
    ----------
    fake : array_like of shape (m, d) or Sample
        Generated features. They may depend on one another in any way.
    train : array_like of shape (n, d) or Sample
        Features of the rows that the generator was trained on.
    heldout : array_like of shape (n', d) or Sample
        Features of rows of the same source that it was not trained on, split off at random. With
        groups (`Sample`), in both: whole groups are the units, and were split at random.
    level : float
        Confidence of the lower bounds, in (0, 1).
    fdr : float
        Share of the listed rows that may be wrong on average, in (0, 1).
    closer : float
        A generated row is a near copy if its distance to the nearest real row is at most so many
        times that to the fifth, in (0, 1). Where real rows themselves are often that near, in few
        dimensions, less is used: what one real row in a hundred would reach.
    seed : int
        Order of the rows, which breaks ties, and which real rows are looked at for the checks.

    Returns
    -------
    Memorisation

    Raises
    ------
    InputError
        If a sample or an argument is not legal; or the same groups, or only the same rows, are in
        `train` and `heldout`.

    Notes
    -----
    Training and held-out rows are pooled. Each generated row takes the nearest pooled row, and the
    ratio r of the distances to the nearest and to the fifth: blind to which rows were trained on.
    If the output does not depend on *which* rows of the pool these are, then given all of that
    they are a random choice, whatever the quality of the generator and however its rows depend on
    one another. So among the K distinct rows that are hit first, in the order of r, the number of
    training rows is hypergeometric. Distinct rows, because many generated ones may share a
    neighbour: a row that is copied a thousand times is one hit.

    `pvalue` takes all generated rows: over-fitting makes it small as well. `copies_pvalue` takes
    near copies only, and lets training rows be as much likelier as generated rows that are no near
    copies show them to be (`odds`). That over-fitted generators without copies pass it is measured,
    not proved (docs/explanation/memorisation.md).

    Examples
    --------
    >>> import numpy as np, genbounds as gb
    >>> rng = np.random.default_rng(0)
    >>> train, heldout, fresh = rng.normal(size=(3, 300, 32))
    >>> copied = train[:60] + 0.1 * rng.normal(size=(60, 32))
    >>> found = gb.memorisation(np.concatenate([copied, fresh]), train, heldout)
    >>> found.copies, found.copies_low <= 60, found.suspects[0].train_row < 60
    (True, True, True)
    >>> gb.memorisation(fresh, train, heldout).copies
    False
    """
    alpha = 1.0 - check_open_unit("level", level)
    check_open_unit("fdr", fdr)
    check_open_unit("closer", closer)
    generated = check_features("fake", features_of(fake), minimum=1)
    check_rows("fake", generated)
    rng = seeded(check_count("seed", seed, minimum=0), "order")
    pool = pool_of(train, heldout, rng)
    check_same_dimension("fake", generated.shape[1], "train", pool.rows.shape[1])
    named = {"`fake`": fake, "`train`": train, "`heldout`": heldout}
    origins = {name: origin_of(x) for name, x in named.items()}
    check_same_encoder(origins)

    with threads_for(float(len(pool.rows)) * max(generated.size, pool.rows.size)):
        limit, usual, checks = check_real_rows(pool, float(closer))
        nearest = neighbours(generated, pool)
    ratio, unit = nearest.ratio, pool.unit[nearest.row]
    near = ratio <= limit
    total, trained = pool.sizes

    def hit(chosen: Mask) -> Mask:
        return pool.trained[_hit(unit, ratio, pool, chosen)]

    odds = over_fitting(hit(ratio >= usual), total, trained)
    near_excess = careful_excess(hit(near), total, trained, alpha, odds)
    of_all = excess(hit(near | True), total, trained, alpha)
    train_ids, heldout_ids = pool.ids
    return Memorisation(
        near=near_excess,
        every=of_all,
        suspects=tuple(_suspects(nearest, near, pool, fdr, odds)),
        level=level,
        fdr=fdr,
        closer=limit,
        odds=odds,
        n=len(generated),
        train_n=train_ids.size,
        heldout_n=heldout_ids.size,
        train_units=trained,
        heldout_units=total - trained,
        unit="row" if not pool.grouped else "group",
        least_visible=least_visible(total, trained, alpha),
        ratio=ratio,
        nearest_trained=pool.trained[unit],
        warnings=(
            *check_files(generated, pool),
            *check_strata(train, heldout),
            *checks,
            *check_swapped(near_excess, of_all, pool),
            *check_size(pool, alpha),
            *origin_warnings(origins),
        ),
        assumptions=_assumptions(pool, limit),
    )


def _hit(unit: Index, ratio: Float, pool: Pool, chosen: Mask) -> Index:
    """Return the distinct units that the chosen rows hit, nearest first."""
    closeness = _closeness(unit, ratio, pool, chosen)
    order = np.argsort(closeness, kind="stable")
    return order[: int(np.isfinite(closeness).sum())]


def _closeness(unit: Index, ratio: Float, pool: Pool, chosen: Mask) -> Float:
    """Return the smallest ratio with which each unit is hit; infinite where it is not."""
    closeness = np.full(pool.trained.size, np.inf)
    np.minimum.at(closeness, unit[chosen], ratio[chosen])
    closeness[~pool.usable] = np.inf
    return closeness


def _suspects(
    found: Neighbours, near: Mask, pool: Pool, fdr: float, odds: float
) -> Iterator[Suspect]:
    """List training rows by the generated row that is nearest to each."""
    unit, ratio = pool.unit[found.row], found.ratio
    closeness = _closeness(unit, ratio, pool, near)
    chosen = listed(closeness, pool.trained, pool.usable, fdr, odds)
    hits = np.bincount(unit[near], minlength=closeness.size)
    order = np.lexsort((ratio, unit))
    nearest = order[np.searchsorted(unit[order], chosen)]
    for place, row in zip(chosen.tolist(), nearest.tolist(), strict=True):
        yield Suspect(
            fake_row=row,
            train_row=int(pool.source[found.row[row]]),
            distance=float(found.distances[row, 0]) * pool.scale,
            ratio=float(ratio[row]),
            hits=int(hits[place]),
        )


def _assumptions(pool: Pool, limit: float) -> tuple[str, ...]:
    rows = "groups (whole ones)" if pool.grouped else "rows"
    return (
        f"training and held-out {rows} are a random split of one data set; the generated rows may "
        "depend on one another in any way",
        f"a near copy has a ratio of at most {limit:.3g}: distance to the nearest real row over "
        "that to the fifth, as rows mixed from a training row and a neighbour or blurred ones have "
        "as well; copies that the encoder does not show are not seen",
    )
