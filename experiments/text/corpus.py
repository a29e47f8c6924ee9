"""Real English sentences that are on every machine: the language reference inside Python."""

from __future__ import annotations

import re

import numpy as np

# Phrases of the reference and other ways to say them; the meaning stays.
PARAPHRASES = (
    (r"\bmust\b", "has to"),
    (r"\bcannot\b", "is not able to"),
    (r"\bcan be\b", "may be"),
    (r"\bis used to\b", "serves to"),
    (r"\bFor example\b", "For instance"),
    (r"\bfor example\b", "for instance"),
    (r"\bhowever\b", "nevertheless"),
    (r"\bHowever\b", "Nevertheless"),
    (r"\bis called\b", "goes by the name of"),
    (r"\breturns\b", "gives back"),
    (r"\braised\b", "thrown"),
    (r"\bshould\b", "ought to"),
    (r"\bsame as\b", "identical to"),
    (r"\bThe\b", "This"),
)
OPENINGS = ("", "Note that ", "In other words, ", "To put it differently, ", "Put simply, ")


def sentences() -> list[str]:
    """Return the sentences of the reference's prose, without doublets, in its order."""
    from pydoc_data.topics import topics

    found: dict[str, None] = {}
    for text in topics.values():
        for paragraph in text.split("\n\n"):
            # Prose begins at the margin; examples and grammar are set in.
            if paragraph.startswith((" ", "*", "-", "=", "+", "|", "See also")):
                continue
            for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z])", " ".join(paragraph.split())):
                words = sentence.split()
                if 6 <= len(words) <= 40 and sentence[0].isupper() and sentence[-1] in ".!?":
                    found[sentence.replace("*", "").replace('"', "")] = None
    return list(found)


def paraphrase(sentence: str, rng: np.random.Generator) -> str:
    """Say a sentence otherwise, by rules: other words for some, perhaps another opening."""
    for pattern, other in PARAPHRASES:
        if rng.random() < 0.8:
            sentence = re.sub(pattern, other, sentence)
    opening = OPENINGS[rng.integers(len(OPENINGS))]
    return opening + (sentence[0].lower() + sentence[1:] if opening else sentence)


def diluted(
    pool: list[str], n: int, share: float, rng: np.random.Generator, *, rewrite: bool
) -> list[str]:
    """Draw `n` texts: a fresh sentence each, or with probability `share` one of ten, repeated.

    With `rewrite` the repeated ones are said otherwise each time.
    """
    repeated, fresh = pool[:10], pool[10:]
    texts = []
    for _ in range(n):
        if rng.random() < share:
            text = repeated[rng.integers(len(repeated))]
            texts.append(paraphrase(text, rng) if rewrite else text)
        else:
            texts.append(fresh[rng.integers(len(fresh))])
    return texts
