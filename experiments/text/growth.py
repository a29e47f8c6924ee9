"""Vendi scores of growing parts of a corpus: which settle (V24, its figures of text).

``python -m experiments.text.growth`` scores parts of the sentences of Python's own reference by
every method. Their features are their words, weighted by rarity (TF-IDF), which needs no model:
not the embedding of the paper.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from experiments.record import PAGE, picture, record, stamp
from experiments.text.corpus import sentences
from experiments.vendi.__main__ import FREQUENCIES, KEPT, METHODS, Line, convergence, paint
from genbounds.estimators import median_bandwidth

NAME = "sentences, words"


class Corpus:
    """The sentences as a distribution: without replacement, so that none comes twice."""

    def __init__(self) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer

        # A word of one sentence alone says nothing about another one.
        self.features = TfidfVectorizer(min_df=2).fit_transform(sentences()).toarray()

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw `n` of them."""
        return self.features[rng.permutation(len(self.features))[:n]]


def main(argv: list[str] | None = None) -> int:
    """Score and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[70, 140, 280, 560, 1120])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args(argv)
    corpus = Corpus()
    total, d = corpus.features.shape
    if max(options.sizes) > total:
        parser.error(f"--sizes must be at most {total}: the corpus has no more sentences")
    bandwidths = {"cosine": None, "rbf": median_bandwidth(corpus.features)}
    studied = (
        Line(NAME, corpus, kernel, method, order, bandwidths[kernel])
        for kernel, methods in METHODS.items()
        for method, order in methods
    )
    rows, curves = convergence(
        studied, options.sizes, options.seed, name="text-growth", page=options.page
    )
    shown = {"rows": "sentences", "title": "Sentences by their words"}
    image = picture(
        "text-growth",
        lambda axes: paint(axes, options.sizes, curves, **shown),
        page=options.page,
    )
    lines = [
        stamp(),
        f"Growing parts of {total:,} sentences, seed {options.seed}; {d:,} words. Score ± half of "
        f"its 95 % interval. {KEPT} eigenvalues kept, {FREQUENCIES} frequencies.",
        "",
        *rows,
        "",
        image,
    ]
    record("text-growth", lines, page=options.page)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
