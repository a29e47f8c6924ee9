"""One page of every kind, for the browser; names are hostile where there are any."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import genbounds as gb
from genbounds import bounds, report
from genbounds.features.thumbnails import Pictures
from genbounds.report import Section
from tests.report.conftest import AUDIT, HOSTILE, make_ranking, make_score
from tests.report.test_page import everything


def pages() -> dict[str, report.Page]:
    """Return one page of every kind, and one with everything hostile in it."""
    ranking = make_ranking(["diffusion", "flow", "gan", "vae"])
    catalog = bounds.catalog()
    row = AUDIT[0] | {"id": "o24.gaussian-mean"}
    return {
        "score": report.score_page(
            ranking.scores,
            metric="fd",
            level=0.95,
            ranking=ranking,
            convergence={name: [(50, s), (500, s)] for name, s in ranking.scores.items()},
        ),
        "audit": report.audit_page(
            {"rows": [row | {"source": "M25 Lemma 12, O24 Lemma E.4"} for row in AUDIT], "seed": 0}
        ),
        "statement": report.statement_page(catalog["o24.gaussian-mean"], row),
        "select": report.Page("Select", "Lead").add(
            Section(
                "Samples",
                [
                    report.samples_plot({"a": 10, "b": 300, "c": 40}, best="a"),
                    report.spending_plot([5, 10, 310], {"a": [5, 5, 10], "b": [0, 5, 300]}),
                    report.rank_plot(spread()),
                ],
            )
        ),
        "hostile": everything(),
        **decisions(),
        **selections(),
        **explained(),
    }


def spread() -> gb.Ranking:
    """Return a ranking on a logarithmic axis, the smallest scores with intervals from 0."""
    values = {"flow": 0.0126, "gan": 0.024, "diffusion-transformer-xl-2": 0.2, "vae": 5.0}
    scores = {name: make_score(value, half=0.035) for name, value in values.items()}
    return replace(make_ranking(list(values)), scores=scores)


def decisions() -> dict[str, report.Page]:
    """Return the pages of gate, plan, track and mixture; names are hostile where there are any."""
    rng = np.random.default_rng(0)
    real, old, new = (scale * rng.normal(size=(400, 3)) for scale in (1.0, 1.2, 1.25))
    verdict = gb.gate(new, old, real, margin="30%")
    a, b = HOSTILE["script"], HOSTILE["rtl"]
    scores = dict(zip((a, b), verdict.scores.values(), strict=True))
    widths = {400: 2.0, 800: 1.2, 1200: 1.2, 1600: 2.0}
    run = gb.track({step: w * rng.normal(size=(400, 3)) for step, w in widths.items()}, real)
    return {
        "gate": report.gate_page(replace(verdict, candidate=a, baseline=b, scores=scores)),
        "plan": report.plan_page(gb.plan(old, real, half_width=0.3)),
        "selection-plan": report.selection_plan_page(
            gb.select.plan({a: old, b: 2.0 * new}, real, limit=2_000)
        ),
        "track": report.track_page(run),
        "mixture": report.mixture_page(gb.mixture({a: old, b: new, HOSTILE["image"]: real}, real)),
    }


def selections() -> dict[str, report.Page]:
    """Return the pages of selections with contexts and of mixtures."""
    names = ["diffusion-xl-2", HOSTILE["emoji"]]
    shifts = dict(zip(names, (0.0, 0.5), strict=True))
    arms = {
        name: lambda n, rng, context, shift=shift: rng.normal(
            shift * (context != HOSTILE["rtl"]), size=(n, 2)
        )
        for name, shift in shifts.items()
    }
    real = np.random.default_rng(0).normal(size=(400, 2))
    contexts = dict.fromkeys(("a portrait of a person, studio light", HOSTILE["rtl"]), real)
    both = {name: lambda n, rng: rng.normal(size=(n, 2)) for name in names}
    return {
        "contexts": report.contexts_page(gb.select.run(arms, contexts=contexts, limit=200)),
        "mixture-selection": report.mixture_selection_page(
            gb.select.run(both, real, metric="kid", target="mixture", tolerance=0.5, limit=300)
        ),
    }


def explained() -> dict[str, report.Page]:
    """Return the pages of modes and memorisation, with pictures and hostile names of items."""
    rng = np.random.default_rng(0)
    names = [list(HOSTILE.values())[row % len(HOSTILE)] for row in range(200)]
    held = Pictures(names=names, contents=rng.random(size=(200, 6, 6)))
    lost = Pictures(names=names, problem=f"{HOSTILE['image']} is gone")
    two = rng.normal(size=(200, 3)) + 8.0 * rng.integers(2, size=(200, 1))
    modes = gb.modes(gb.Sample(rng.normal(size=(200, 3))), gb.Sample(two))
    train, heldout, fake = rng.normal(size=(3, 200, 8))
    fake[:30] = train[:30] + 0.001 * rng.normal(size=(30, 8))
    copies = gb.memorisation(fake, train, heldout)
    return {
        "modes": report.modes_page(
            {HOSTILE["script"]: modes}, fake={HOSTILE["script"]: lost}, real=held
        ),
        "memorisation": report.memorisation_page(copies, fake=held, train=held),
    }
