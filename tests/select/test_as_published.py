"""The published policies pick what the printed algorithms pick, on the arms of the regret study.

The printed algorithms stand in `printed`, by somebody who had not seen ours. Exact ties, for which
print has no rule, may go either way: posteriors with one peak of equal height make many.
"""

from __future__ import annotations

import numpy as np
import pytest

from experiments.selection.embeddings import Builder, posteriors
from genbounds import InputError, select
from genbounds.select import FdUcb, FidUcb, IsUcb
from tests.select import printed

BATCH, DELTA, DIRECTIONS = 5, 0.05, 64
LINE_UPS = ("inception 5", "clip 5", "dinov2 5", "inception 20")
AS_PRINTED = {
    "fd-ucb": (FdUcb(as_published=True), printed.fd_ucb, {}),
    "fid-ucb": (FidUcb(as_published=True), printed.fid_ucb, {}),
    "is-ucb M25": (IsUcb(), printed.is_ucb, {"paper": "M25"}),
    "is-ucb O24": (IsUcb(source="o24"), printed.is_ucb, {"paper": "O24"}),
}


class Listed:
    """Rows in their order."""

    def __init__(self, rows):
        self.rows, self.given = rows, 0

    def draw(self, n, rng=None):
        self.given += n
        return self.rows[self.given - n : self.given]


def problem(line_up, steps, burn_in=0):
    """Return the rows of every arm, and the reference; none for posteriors."""
    name, size = line_up.split()
    if name == "is":
        arms, reference = posteriors(int(size), DIRECTIONS, 0)[0], None
    else:
        builder = Builder(name, DIRECTIONS)
        found = builder.pretrained(0) if size == "5" else builder.controlled(0)
        arms, reference = found.arms, found.reference
    rows = {
        name: arm.draw(steps * BATCH + burn_in, np.random.default_rng([0, k]))
        for k, (name, arm) in enumerate(arms.items())
    }
    return rows, reference


def picks(line_up, policy, steps, burn_in=0):
    """Return ours, the printed ones where equal scores are decided as ours, and those alone."""
    ours, algorithm, options = AS_PRINTED[policy]
    if burn_in:
        ours, options = FdUcb(as_published=True, burn_in=burn_in), {"burn_in": burn_in}
    rows, reference = problem(line_up, steps, burn_in)
    before = len(rows) * burn_in
    run = select.run(
        {name: Listed(of_arm) for name, of_arm in rows.items()},
        reference,
        metric="fd" if reference else "is",
        policy=ours,
        batch=BATCH,
        budget=steps * BATCH + before,
        confidence=1.0 - DELTA,
    )
    found = [run.history.names[arm] for arm in run.history.picks[before // BATCH :]]
    moments = () if reference is None else (reference.mean, reference.cov)

    def theirs(followed):
        arms = {name: Listed(of_arm) for name, of_arm in rows.items()}
        return algorithm(
            lambda name, n: arms[name].draw(n),
            list(arms),
            *moments,
            steps=steps,
            batch=BATCH,
            delta=DELTA,
            followed=followed,
            **options,
        )

    return found, theirs(found), theirs(None)


@pytest.mark.parametrize("policy", ["fd-ucb", "fid-ucb"])
def test_every_pick_is_that_of_the_printed_algorithm(policy):
    ours, theirs, alone = picks("inception 5", policy, 120)
    assert ours == theirs == alone
    assert len(set(ours[50:])) > 2  # else any order would do


def test_after_a_burn_in_too():
    ours, theirs, alone = picks("clip 5", "fd-ucb", 60, burn_in=40)
    assert ours == theirs == alone


@pytest.mark.parametrize("policy", ["is-ucb M25", "is-ucb O24"])
def test_every_pick_of_is_ucb_is_that_of_the_printed_algorithm_but_for_exact_ties(policy):
    ours, theirs, _ = picks("is 5", policy, 200)
    assert ours == theirs
    assert len(set(ours[50:])) > 2


@pytest.mark.nightly
@pytest.mark.parametrize("line_up", LINE_UPS)
@pytest.mark.parametrize("policy", ["fd-ucb", "fid-ucb"])
def test_all_picks_of_the_figures_of_fd(line_up, policy):
    ours, theirs, alone = picks(line_up, policy, 1_000)
    assert ours == theirs == alone


@pytest.mark.nightly
@pytest.mark.parametrize("line_up", ["is 5", "is 20"])
@pytest.mark.parametrize("policy", ["is-ucb M25", "is-ucb O24"])
def test_all_picks_of_the_figures_of_is(line_up, policy):
    ours, theirs, _ = picks(line_up, policy, 1_000)
    assert ours == theirs


@pytest.mark.parametrize(
    ("ours", "policy"),
    [
        (FdUcb(constants="printed", refresh=0), "fd-ucb"),  # divisor n - 1, entries cut off
        (FidUcb(constants="printed", refresh=0), "fid-ucb"),  # norms of App. D.5
        (IsUcb(source="o24"), "is-ucb M25"),
    ],
)
def test_other_options_pick_otherwise(ours, policy, monkeypatch):
    """The power of the tests above."""
    monkeypatch.setitem(AS_PRINTED, policy, (ours, *AS_PRINTED[policy][1:]))
    found, theirs, _ = picks("is 5" if policy.startswith("is") else "clip 5", policy, 100)
    assert found != theirs


def test_what_as_published_sets_is_said():
    policy = FdUcb(as_published=True)
    assert (policy.constants, policy.threshold, policy.refresh) == ("printed", None, 0)
    for option, value in {"threshold": 3.0, "refresh": 0.5}.items():
        with pytest.raises(InputError, match=option):
            FdUcb(as_published=True, **{option: value})
    other = FidUcb(as_published=True)
    assert (other.constants, other.estimates, other.refresh) == ("printed", "sample", 0)
    with pytest.raises(InputError, match="estimates"):
        FidUcb(as_published=True, estimates="other")
