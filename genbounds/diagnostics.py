"""From facts to warnings: one table of rules, with what was seen and what to do about it."""

from __future__ import annotations

from typing import Any, NamedTuple

from genbounds._tables import Diagnostic as Diagnostic
from genbounds._tables import Severity as Severity


class Rule(NamedTuple):
    """One kind of warning.

    Attributes
    ----------
    code : str
        One of `CODES`.
    severity : {"unreliable", "caution"} or None
        None: the facts decide.
    message, remedy : str
        What was seen, and what to do; facts stand in braces.
    """

    code: str
    severity: Severity | None
    message: str
    remedy: str = ""


# fmt: off
RULES: dict[str, Rule] = {
    "unpaired-noise": Rule("unpaired-noise", "caution",
        "rows of the partner are no more alike to those of the model than shuffled ones "
        "({likeness:.1f} standard errors)",
        "Draw both from the same noise, and keep their order."),
    "chance-correlation": Rule("chance-correlation", "caution",
        "the partner explains nothing that chance would not (correlation {correlation:.2f} of the "
        "influences of {units} rows): this is the plain score",
        "Take a partner nearer to the model, or leave it out."),
    "other-partner": Rule("other-partner", "unreliable",
        "the partner's further draws score otherwise than its common ones, by {apart:.1f} standard "
        "errors",
        "Make both with the same weights, steps, settings and prompts."),
    "noise-again": Rule("same-rows", "unreliable",
        "{again} of the {rows} further draws are common ones, or one another: what they tell is "
        "known already",
        "Draw the further ones from noise of their own: other seeds."),
    "log-near-zero": Rule("below-range", "unreliable",
        "the distance under {encoder} is {value} ± {stderr}: its logarithm has no normal error so "
        "near to 0",
        "Use more samples, or scale=\"floor\" (--scale floor)."),
    "little-gain": Rule("little-gain", "caution",
        "the partner leaves {left:.0%} of the variance: the plain score is as good",
        "Take a partner nearer to the model, or more of its draws."),
    "fitted-beta": Rule("fitted-beta", "caution",
        "the weight of the partner was fitted to {units} rows, which can move the score by a third "
        "of a standard error",
        "Use {enough} common rows or more, or pass `beta` from a pilot."),
    "pilots-too-close": Rule("few-samples", "caution",
        "the pilots do not tell {best} from {rival}: if their true gap is smaller than it "
        "looks, the run takes several times as many samples",
        "Use larger pilots, or a larger tolerance."),
    "too-few-for-a-look": Rule("few-samples", "unreliable",
        "{samples}, too few for a look: its interval is no part of the joint statement"),
    "lone-unit": Rule("few-samples", "unreliable",
        "at {n} samples a stratum has a single row or group: nothing shows how it varies",
        "Draw more samples, or have larger strata."),
    "few-held-out": Rule("few-samples", "caution",
        "with {heldout} beside {trained} that were trained on, fewer than {needed} cannot be "
        "significant",
        "Hold out more rows, as many as were trained on."),
    "few-for-eigenvalues": Rule("few-samples", "caution",
        "{n} samples for {eigenvalues} eigenvalues, fewer than {least} each: bias can be left, "
        "so the interval is widened by half of what was removed",
        "Keep fewer eigenvalues or use more samples."),
    "fitted-vendi-spectrum": Rule("few-samples", "caution",
        "{n} samples for {dimension} feature dimensions: the score is that of a smooth spectrum "
        "fitted to the sample's",
        "Use {least} samples per dimension or more, or order 2."),
    "noisy-square": Rule("few-samples", "caution",
        "the relative error of E k(x, x')² is {error:.0%}: the interval on the log scale can "
        "miss more often",
        "Use more samples or a wider bandwidth."),
    "one-by-one": Rule("few-samples", "unreliable",
        "both samples have fewer than {least} samples per dimension, and of one only the "
        "moments are known: a positive bias of about {bias:.2g} may be left, by which the "
        "interval is widened",
        "Pass the features instead of their moments, or use more samples."),
    "few-per-dimension": Rule("few-samples", "unreliable",
        "{ratio:.2g} samples per dimension: the methods for so few assume independent rows, and "
        "the expansion needs {least}",
        "Use more samples, or fewer features."),
    "few-per-class": Rule("few-samples", "caution",
        "{n} samples for {classes} classes, fewer than two per class: the interval does not "
        "cover the bias that can be left",
        "Use more samples."),
    "plan-from-few": Rule("few-samples", "caution",
        "planned from few samples per feature: all of the variance is taken to fall with 1/n, "
        "which asks for too many samples rather than too few, and sometimes finds that no "
        "number suffices where one does",
        "Plan again from a larger pilot or, if it is the smaller one, with a larger reference."),
    "few-rows-for-limits": Rule("few-samples", "unreliable",
        "only {n} rows: value and interval rest on limit theorems that need {least}",
        "Use more samples."),
    "published-from-few": Rule("few-samples", "unreliable",
        "the noise of a distance from only {n} {what} rows cannot be predicted from these samples",
        "Compare with a distance of {least} rows or more; or pass plain rows, at least twice as "
        "many as theirs."),
    "pilot-near-zero": Rule("few-samples", "caution",
        "the pilot's score is {value:.3g} with a standard error of {stderr:.2g}: the number of "
        "samples may be {times:.2g} times too large or too small",
        "Plan again from a larger pilot."),
    "spectrum-guessed": Rule("few-samples", "unreliable",
        "{n} rows show little of {rank} dimensions: the value rests on a spectrum that decays "
        "smoothly beyond them",
        "Use {enough} rows or more, or fewer features; or the kernel distance (--metric kid, "
        "genbounds.kid), which is unbiased at any number of rows."),
    "few-samples": Rule("few-samples", "caution",
        "only {n:.4g} {what}: the interval can miss more often than it says",
        "Use {enough} or more."),
    "few-groups": Rule("few-samples", "unreliable",
        "the {what} count as only {units:.3g} independent groups: the interval misses more "
        "often than it says",
        "Use {least} groups or more, better {enough}."),
    "unequal-subspaces": Rule("misfit", "caution",
        "the rows may lie in subspaces of their own, of which the fit sees too little: the "
        "interval is widened by all of the bias removed"),
    "no-smooth-spectrum": Rule("misfit", "unreliable",
        "no smooth spectrum fits that of the sample",
        "Use more samples: from 8 per dimension on no spectrum is fitted."),
    "tail-bias": Rule("heavy-tails", "unreliable",
        "heavy tails or rare features make the bias {times:.2g} times that of Gaussian rows: "
        "about {left:.2g} of it may be left, where the standard error is {stderr:.2g}",
        "Use more samples, or features with lighter tails."),
    "heavy-tails": Rule("heavy-tails", "unreliable",
        "{whose} have heavy tails: one of them makes up {largest:.0%} of the squared "
        "influences, and the tail index is {index:.2g} (below 2 there is no variance)",
        "Use more samples, or features with lighter tails."),
    "tails-as-few": Rule("heavy-tails", "unreliable",
        "the bias is {times:.2g} times that of independent Gaussian rows: {n} {name} samples "
        "are as good as {ratio:.2g} per dimension, where the method needs {least}",
        "Use more groups of rows, or fewer features."),
    "copies-of-earlier-rows": Rule("duplicates", "unreliable",
        "{copied} of its first {n} rows are copies of earlier ones: it draws from a pool with "
        "replacement, ignores its random numbers, or its file holds rows more than once",
        "Let it generate new samples by the rng that it is given, or drop repeated rows; the "
        "rows of a file are drawn once each."),
    "held-out-rows-trained": Rule("duplicates", None,
        "{shared} of {rows} held-out rows equal training rows: copies of these cannot be "
        "told, and they are left out",
        "Remove repeated files, then split."),
    "repeated-training-rows": Rule("duplicates", "caution",
        "{repeated} of {rows} training rows repeat others, and count once",
        "Remove repeated files, then split."),
    "equal-training-rows": Rule("duplicates", "caution",
        "{twins} of {rows} training rows equal another one: near them every generated row that "
        "is no exact copy counts as authentic",
        "Keep one of each."),
    "rows-twice": Rule("duplicates", None,
        "{repeated} of the {n} rows kept beside the {whose}moments repeat others: a part was "
        "merged twice, or files stand twice",
        "Make the moments anew, of every row once."),
    "repeated-rows": Rule("duplicates", None,
        "{repeated} of {n} rows repeat others",
        "Are they independent samples? Drop repeated files."),
    "repeats-as-one": Rule("duplicates", "caution",
        "{repeated} of {n} {whose}rows repeat others, and count as one draw each",
        "Drop repeated files. If equal rows are independent draws, pass genbounds.Sample(x) "
        "(--iid)."),
    "real-twins": Rule("near-duplicates", "caution",
        "{share} of the real rows have five or more near twins: copies of these are not seen as "
        "near copies",
        "Keep one of each (crops, frames, encodings of one picture), or pass "
        "genbounds.Sample(x, groups=...) (--groups)."),
    "near-duplicates": Rule("near-duplicates", None,
        "{whose}rows have {twins:.2g} nearly identical ones each, on average",
        "Give rows of one source one id: genbounds.Sample(x, groups=...) (--groups); or drop "
        "copies."),
    "nearer-to-held-out": Rule("leak", "unreliable",
        "generated rows are nearer to held-out rows than to training rows, beyond chance: the "
        "model was trained on the former, or both files are exchanged",
        "Check which rows the model was trained on."),
    "held-out-rows-generated": Rule("leak", None,
        "{leaked} of {rows} generated rows are held-out rows: the generator was trained on "
        "these too, or the files are mixed up",
        "Pass rows that the model generated, and rows that it was not trained on."),
    "leak": Rule("leak", None,
        "{common} of {rows} generated rows are rows of the reference",
        "Score samples that the reference does not hold."),
    "rows-of-another-arm": Rule("same-rows", "unreliable",
        "{copied} of its first {rows} rows are also rows of {name}: their difference is not "
        "that of two models",
        "Check that every arm has its own samples."),
    "training-rows-generated": Rule("same-rows", "unreliable",
        "the generated rows are the training rows, each once: as if of the same file",
        "Pass rows that the model generated."),
    "same-rows": Rule("same-rows", None,
        "{common} of {rows} rows of {one} are also rows of {two}: their difference is not that "
        "of two models",
        "Check that every model has its own file."),
    "order-of-draws": Rule("dependent-rows", "unreliable",
        "{what} (p = {p:.1g} after {n} rows)",
        "Draw the class of every sample at random, from a model that does not change."),
    "grouped-reference-rows": Rule("dependent-rows", "unreliable",
        "what real rows get is known for density and coverage where real rows are independent; "
        "with groups of them the ratio of a perfect model is below 1",
        "Pass a second real sample, null=gb.Sample(more, groups=...)."),
    "equal-groups": Rule("dependent-rows", "unreliable",
        "{whose}rows tend to have exactly {others} others near to them: these come from one "
        "source, or the number of rows of each class was fixed",
        "Pass genbounds.Sample(x, groups=sources) (--groups) or strata=classes (--strata); if "
        "all rows are independent, genbounds.Sample(x) (--iid)."),
    "alike-in-order": Rule("dependent-rows", "unreliable",
        "neighbouring {whose}rows are alike (z = {z:.0f}): they are sorted by class, or several "
        "come from one source",
        "If the number of rows per class was fixed, pass genbounds.Sample(x, strata=classes) "
        "(--strata); if rows share a source, groups=sources (--groups); if they are only "
        "sorted, genbounds.Sample(x) (--iid)."),
    "alike-though-alone": Rule("dependent-rows", "caution",
        "every id of `groups` is different, and neighbouring {whose}rows are alike (z = {z:.0f}): "
        "rows of one source may have got ids of their own",
        "Give rows of one source one id. If they are only sorted, the interval is right as it is."),
    "alike-by-place": Rule("dependent-rows", "unreliable",
        "generated and reference rows of one place are alike (z = {z:.0f}): they come from the "
        "same prompts, or both files are sorted",
        "Pass genbounds.Sample(x, groups=prompts) for both samples, with the same ids "
        "(--groups); if they are only sorted, genbounds.Sample(x) (--iid)."),
    "unlike-by-name": Rule("unrelated-labels", "caution",
        "generated and reference rows of one group are hardly more alike than others (z = "
        "{z:.1f})",
        "Check that groups has the ids of these rows, in their order; groups that the samples "
        "do not share need ids of their own. If all is so, the interval is right as it is."),
    "unrelated-labels": Rule("unrelated-labels", None,
        "{whose}rows of one {one} are hardly more alike than others (z = {z:.1f}){seen}",
        "Check that {kind} has the ids of these rows, in their order. If it has, the interval "
        "is right as it is."),
    "shared-seeds": Rule("shared-seeds", "unreliable",
        "{whose} at the same place of every group are more alike than others: all groups were "
        "drawn from the same seeds, whose part of the error the interval leaves out",
        "Pass genbounds.Sample(x, groups=..., seeds=...) (--seeds), or draw every group from seeds "
        "of its own. If places mean something else (frames of a clip), the interval is for these "
        "places."),
    "few-seeds": Rule("few-seeds", None,
        "all groups share {seeds} seeds, from which it is hard to tell how seeds vary",
        "More seeds make the interval shorter; more groups hardly do."),
    "class-shares": Rule("class-shares", "caution",
        "generated and reference rows have other class shares ({name}: {generated} and "
        "{reference}): the score is of other shares as well as of other samples{beside}",
        "If shares are no part of the question, pass genbounds.Sample(x, strata=classes, "
        "shares=\"reference\") (--shares reference)."),
    "balanced-classes": Rule("balanced-classes", "unreliable",
        "the likeliest classes occur more evenly than independent draws would: the number of "
        "samples of each class was fixed",
        "Pass genbounds.Sample(probs, strata=classes)."),
    "reference-size-unknown": Rule("reference-size-unknown", "unreliable",
        "the reference does not say from how many samples it comes and is taken as exact: the "
        "{what}",
        "Pass their number, Moments.load(path, n=...) (--reference-n), or Moments(mean, cov) if "
        "they are exact (--reference-exact)."),
    "random-weights": Rule("random-weights", "unreliable",
        "the encoder's weights are random, not trained: the scores mean nothing",
        "Pass trained weights."),
    "far-from-zero": Rule("extreme-scale", "unreliable",
        "the features lie {offset:.1g} standard deviations from 0: means and covariances have "
        "lost the digits that count",
        "Subtract one common row from all features before moments are computed."),
    "far-from-zero-in-kernel": Rule("extreme-scale", "unreliable",
        "the features lie {offset:.1g} standard deviations from 0: the kernel of two rows has "
        "lost the digits that count",
        "Subtract one common row from all features; this kernel's score is then another."),
    "rounded-features": Rule("extreme-scale", "unreliable",
        "{whose}features lie so far from 0 that their floating-point type holds them in steps of "
        "{step:.2g} standard deviations",
        "Subtract one common row from all features before they are written in this type."),
    "extreme-size": Rule("extreme-scale", "caution",
        "{whose}features are of the order of {size:.1g}, which no encoder gives",
        "Check the unit of this sample, and of every other."),
    "extreme-scale": Rule("extreme-scale", "caution",
        "the features are of the order of {unit:.1g}; the score was computed for features "
        "divided by that, to which numbers in other messages refer"),
    "encoder-unknown": Rule("encoder-mismatch", "caution",
        "{unknown} has no metadata of its encoder; {known} has: that both come from the same "
        "encoder was not checked",
        "Make the features of both with `genbounds features`."),
    "metadata-differ": Rule("encoder-mismatch", "caution",
        "the features' {name} differ: {values}"),
    "one-part": Rule("part-of-sample", "unreliable",
        "{parts} holds one part of an extraction only: items that follow one another, and no "
        "random sample of all",
        "Pass the files of all parts as one sample: a list, or a quoted pattern."),
    "generated-size-unknown": Rule("moments-only", "unreliable",
        "the statistics of the generated samples do not say from how many samples they come and "
        "are taken as exact",
        "Write `n` beside mu and sigma: Moments.from_features(x, keep=2048).save(path)."),
    "fourth-moments": Rule("moments-only", "caution",
        "only mean and covariance of the {name} samples are known: their fourth moments, on "
        "which bias and interval depend, are taken to be those {source}",
        "Pass the features, or keep some rows: Moments.from_features(x, keep=2048)."),
    "moments-equally-scaled": Rule("moments-only", "caution",
        "only moments are known, so all rows are taken as equally scaled: under heavy tails the "
        "distance is overstated and its interval too short",
        "Pass the features."),
    "generated-moments-only": Rule("moments-only", "caution",
        "{reason}"),
    "score-of-frequencies": Rule("bias-left", "caution",
        "the score is that of the kernel made of these {frequencies} frequencies, to which the "
        "interval is conditional; the kernel's own score is larger"),
    "reference-bias-left": Rule("bias-left", None,
        "FD∞ leaves the bias of the reference sample in (about {bias:+.3g})",
        "The estimator 'debiased' removes both."),
    "with-replacement": Rule("bias-left", "unreliable",
        "subsets drawn with replacement lead to the plug-in score of the whole pool: its bias "
        "is left in",
        "Draw them without replacement: Subsets(replace=False)."),
    "bias-left": Rule("bias-left", "caution",
        "the plug-in keeps its bias{size}, so that the interval is not centred on the truth",
        "The estimator 'debiased' removes it."),
    "below-range": Rule("out-of-range", "caution",
        "the debiased estimate {value} lies below the smallest possible value {lower_limit:g}, "
        "which is reported instead: the samples do not show that the score is larger"),
    "above-range": Rule("out-of-range", "caution",
        "the debiased estimate lies above the largest possible value and is reported as that"),
    "far-below-range": Rule("out-of-range", "unreliable",
        "the whole interval lies far below the smallest possible value",
        "Are the samples independent of one another and of the reference?"),
    "whole-below-range": Rule("out-of-range", "caution",
        "the whole interval lies below the smallest possible value, where it is by chance in up "
        "to {chance} of the samples of a model at that value",
        "Are the samples independent of one another and of the reference?"),
    "extreme-share": Rule("no-variation", "caution",
        "{name} is {counted:g}: the interval is that of as many independent rows"),
    "no-halves": Rule("no-variation", "unreliable",
        "{name} is {counted:g}, and the same in both halves whichever way the rows are halved: "
        "there is no interval",
        "Use more real rows, or look at the other scores."),
    "equal-scramblings": Rule("no-variation", "unreliable",
        "all {replicates} scramblings have the same score, so the interval has no width and "
        "says nothing about others",
        "Use more of them, or more points of each: what is rare may have been missed."),
    "no-width": Rule("no-variation", "unreliable",
        "all rows contribute the same, so the interval has no width and says nothing about "
        "other samples",
        "Check that the file holds different samples."),
    "constant-rows": Rule("no-variation", "unreliable",
        "all {n} {what} rows are the same",
        "Check that they are the features of different samples."),
    "few-for-frequencies": Rule("depends-on-n", "caution",
        "{n} samples for {dimensions} feature dimensions, fewer than {least} each: the bias is "
        "left in",
        "Compare only with equally many samples, or use fewer frequencies."),
    "grows-with-n": Rule("depends-on-n", "caution",
        "the score of {n} samples as it is: it grows with n",
        "Compare only with equally many samples."),
    "grows-with-n-because": Rule("depends-on-n", "caution",
        "the score of {n} samples as it is ({why}): it grows with n, and so does its interval",
        "Compare only with equally many samples; method 'truncated' or order 2 have a limit."),
    "halves-disagree": Rule("depends-on-n", "unreliable",
        "{name} is {value:.4g}, and {drift:.4g} in half the rows; halves give the interval, so "
        "there is none",
        "Use more rows of both samples, or a smaller k."),
    "rank-of-rows": Rule("low-rank", "caution",
        "the {n} rows span only {rank} dimensions, which is taken as the rank of their "
        "distribution"),
    "flat-where-reference-varies": Rule("low-rank", "caution",
        "the rows do not vary where the reference does"),
    "shared-rank": Rule("low-rank", "caution",
        "the samples share only {rank} dimensions, which is taken as the rank of both "
        "distributions"),
    "near-tie": Rule("near-tie", None,
        "{eigenvalues} eigenvalues cannot be told from the largest: the value lies midway "
        "between all of them equal and the largest as it is, and the interval covers both"),
    "rows-for-columns": Rule("implausible-input", "caution",
        "{name} has {d} features but only {n} rows: rows and columns are probably exchanged",
        "Save one row per sample, one column per feature."),
    "bytes-not-features": Rule("implausible-input", "caution",
        "{name} holds 8-bit integers: probably pixels, not the features of an encoder",
        "Pass --encoder with the images, or encode them first."),
    "wide-margin": Rule("implausible-input", "caution",
        "the margin, {margin:.4g}, is {times:.2g} times the score of {baseline}: a candidate worse "
        "by so much passes",
        "For a share of that score add the sign: '{margin:g}%'."),
    "blind-kernel": Rule("implausible-input", "unreliable",
        "with a bandwidth of {bandwidth:.3g} no reference row is near to another: the score is "
        "about 0 whatever the model is",
        "Give a larger bandwidth, or none: the median distance of reference rows."),
    "copies-proved": Rule("copies", "unreliable",
        "the model makes near copies of at least {share} ({level} confidence)",
        "Its score says nothing of new samples: do not choose it by the score."),
    "near-reference": Rule("copies", "caution",
        "the mean cosine distance to the nearest reference row, {cosine}, is below the "
        "threshold: copies, or features that all point one way. Copies are not independent of "
        "the reference, and make the distance too small",
        "Test for copies with genbounds.memorisation, which needs held-out rows."),
    "rows-point-as-reference": Rule("copies", "unreliable",
        "the mean cosine distance to the nearest reference row, {cosine}, is 0 but for "
        "rounding: every row points where a reference row does (copies, one feature, features "
        "far from 0), and the score divides by nothing",
        "Read the distance, and test for copies with genbounds.memorisation."),
    "copied-training-rows": Rule("copies", "caution",
        "{copies} of {rows} generated rows are training rows",
        "Check that the generated file is the right one."),
    "shares-differ": Rule("split", "unreliable",
        "training and held-out rows have different shares of the classes: no random split",
        "Shuffle all real rows, split them at random, train on one part."),
    "no-random-split": Rule("split", "unreliable",
        "held-out {what} are nearer to {others} than a random split leaves them: of {nearest} "
        "{trained} were trained on, {expected:.0f} expected",
        "Shuffle all real rows, split them at random, train on one part. If rows share sources "
        "(clips, prompts), split by source and pass genbounds.Sample(x, groups=sources) "
        "(--groups)."),
    "strata-of-one": Rule("split", "caution",
        "the {told} rows have strata and the {other} rows none: whether both have equal shares "
        "of the classes was not checked",
        "Give the strata of both, or of neither."),
    "hubs": Rule("hubs", "caution",
        "a generated row lies in {density:.3g} times as many neighbourhoods of real rows as a "
        "real row does: generated rows crowd the middle of the data, where precision, density "
        "and coverage are high however little of the data they span",
        "Read recall."),
    "near-threshold": Rule("threshold", "unreliable",
        "the mean cosine distance {cosine} is near the threshold {threshold:g}, where the score "
        "jumps by a factor of {factor}",
        "Use more generated rows, or another threshold."),
    "piecewise-linear": Rule("not-smooth", "unreliable",
        "the score is piecewise linear in the weights: its Hessian misses the bias",
        "Pass derivative=\"secant\" to SmoothScore."),
    "not-weighted": Rule("not-smooth", "unreliable",
        "{name} is no function of weighted rows: every row twice, at half its weight, gives "
        "another value",
        "Take every mean, variance and share with the weights; gb.check_score says more."),
    "piecewise-linear-score": Rule("not-smooth", "unreliable",
        "{name} is piecewise linear in the weights: its Hessian is zero, and the bias is still "
        "there",
        "Pass derivative=\"secant\" to SmoothScore, if `check_score` agrees."),
    "not-differentiable": Rule("not-smooth", "unreliable",
        "{reason}",
        "{remedy}"),
    "subset-spread": Rule("subset-spread", "caution",
        "the standard deviation over subsets, {spread}, which other tools print after ±, is the "
        "spread of scores from {size:,} rows and no error of this score; its standard error is "
        "{stderr}",
        "Quote the interval. Without `subsets` all pairs are used, and it is shorter."),
    "ties": Rule("ties", "unreliable",
        "{tied} of the real rows have another row as far away as their k-th neighbour (k = "
        "{k}): what real rows get of density and coverage is then not known",
        "Pass a second real sample, null=more; or features that are not counts."),
    "unlike-pictures": Rule("unlike-pictures", "caution",
        "the pictures differ in {what} ({shown}), which moves a distance by itself",
        "Write both folders alike: one file format, one size, one colour mode."),
    "turned-pictures": Rule("pixels-lost", "caution",
        "{n} of {of} pictures of {name} have an orientation tag, which is ignored: they are "
        "encoded as they are stored",
        "Turn the pixels themselves (Pillow's ImageOps.exif_transpose)."),
    "clipped-pictures": Rule("pixels-lost", "caution",
        "{n} of {of} pictures of {name} have 16 bits, of which this encoder clips what is above "
        "255, as its program does",
        "Save them with 8 bits."),
    "thumbnails": Rule("thumbnails", "caution",
        "{n} of {of} pictures of {name} have less than a quarter of the usual side ({side} "
        "pixels): thumbnails?",
        "Take them out of the folder."),
}
# fmt: on
"""Every warning there is, by code."""

RULES["dependent-as-few"] = RULES["tails-as-few"]._replace(code="dependent-rows")
CODES: tuple[str, ...] = tuple(dict.fromkeys(rule.code for rule in RULES.values()))
"""Every code of a `Diagnostic`."""


def warn_of(rule: str, *, severity: Severity | None = None, **facts: Any) -> Diagnostic:
    """Return the warning of a rule.

    Parameters
    ----------
    rule : str
        Name of one of `RULES`.
    severity : {"unreliable", "caution"}, optional
        Where the facts decide.
    **facts
        What stands in braces in message and remedy.
    """
    code, usual, message, remedy = RULES[rule]
    return Diagnostic(
        code=code,
        severity=severity or usual or "caution",
        message=message.format(**facts),
        remedy=remedy.format(**facts),
    )
