"""The images that IS-UCB, naive UCB and greedy query, as a sheet (O24 Figure 8).

``python -m experiments.digits.picks`` lets each policy choose among the digits' generators by
Inception score and shows one image of every so many steps, of the first half and of all of them.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.digits.arm import DigitsArm
from experiments.digits.data import Images
from experiments.digits.progress import bars
from experiments.digits.table import write_sheet
from experiments.digits.train import DEFAULT_CACHE, Config, prepare
from experiments.record import PAGE, record, stamp, table
from genbounds import inception_score, select
from genbounds.select import IsUcb, NaiveUcb

BATCH, COLUMNS, POOL = 5, 20, 20_000
POLICIES: dict[str, Any] = {
    "IS-UCB": lambda: IsUcb(source="o24"),
    "naive UCB": lambda: NaiveUcb(source="o24"),
    "greedy": lambda: "greedy",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """An arm that remembers the first image of every batch, in the order of the run."""

    arm: DigitsArm
    seen: list[NDArray[np.float32]] = field(default_factory=list)

    def draw(self, n: int, rng: np.random.Generator) -> NDArray[Any]:
        """Return `n` rows of posteriors."""
        images = self.arm.images(n, rng)
        self.seen.append(images[0])
        return self.arm.encoder.posteriors(images)


def picked(arms: dict[str, DigitsArm], policy: str, steps: int, seed: int) -> tuple[Images, Any]:
    """Return one image of every step, in order, and the selection."""
    seen: list[NDArray[np.float32]] = []
    watched = {name: Watched(arm=arm, seen=seen) for name, arm in arms.items()}
    found = select.run(watched, metric="is", policy=POLICIES[policy](), batch=BATCH,
                       budget=BATCH * steps, seed=seed)  # fmt: skip
    return np.array(seen), found


def main(argv: list[str] | None = None, *, config: Config | None = None) -> int:
    """Play, draw the sheet, record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pool", type=int, default=POOL, help="images behind each true score")
    parser.add_argument("--cache", type=Path, default=DEFAULT_CACHE)
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args(argv)
    with bars() as progress:
        digits = prepare(options.cache, config=config, progress=progress)
    arms = {name: arm for name, arm in digits.arms("posteriors").items() if not arm.control}
    truth = {name: inception_score(arm.draw(options.pool, 0)).value for name, arm in arms.items()}
    rows, sheet = [], {}
    half = options.steps // 2
    for policy in POLICIES:
        images, found = picked(arms, policy, options.steps, options.seed)
        ratios = found.history.optimal_pick_ratio(truth, higher_is_better=True)
        rows.append((policy, f"{ratios[half - 1]:.0%}", f"{ratios[options.steps - 1]:.0%}"))
        for last in (half, options.steps):
            shown = np.linspace(0, last - 1, COLUMNS).astype(int)
            sheet[f"{policy}, first {last:,}"] = images[shown]
    picture = options.page.parent / "images" / "picks.png"
    picture.parent.mkdir(parents=True, exist_ok=True)
    write_sheet(picture, sheet, columns=COLUMNS)
    scores = ", ".join(f"{name} {value:.3g}" for name, value in truth.items())
    record(
        "picks",
        [
            stamp(),
            f"One run of {options.steps:,} steps of {BATCH} images, seed {options.seed}; one image "
            f"of each of {COLUMNS} steps, evenly spaced. Inception scores: {scores}.",
            "",
            *table(
                ("policy", f"best model picked, first {half:,}", f"first {options.steps:,}"), rows
            ),
            "",
            f"![picks](images/{picture.name})",
        ],
        page=options.page,
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
