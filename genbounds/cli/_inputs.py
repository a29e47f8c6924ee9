"""From file names to models: the metric, files, how their rows were drawn, and their scores."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import genbounds as gb
from genbounds._errors import InputError
from genbounds._text import display, listed, quoted, said_by, shown
from genbounds.cli._command import renamed
from genbounds.cli._media import FolderEncoder, ask_for_encoder, open_encoder
from genbounds.cli._options import Judging, Reading
from genbounds.cli._terminal import complain, progress
from genbounds.core.moments import row_blocks
from genbounds.diagnostics import warn_of
from genbounds.features.sources import ARCHIVES, TEXTS
from genbounds.origins import check_same_encoder, origin_warnings
from genbounds.samples import balanced, class_pairs, go_across
from genbounds.validation import POSTERIOR_ATOL, check_count, check_same_dimension, meant

FOLDERS = "folders"
"""As the name of an array: the sub-folder that each image was in, which `features` keeps."""

FOLDER_LABELS = "labels"
"""The array in which `features` keeps it."""


SAMPLE_ARGUMENTS = ("fake", "probs", "x", "labels")
"""What the library calls the sample of one model, and the labels of its rows."""

MEDIA = (*ARCHIVES, *TEXTS)
"""Endings of files that are to be encoded."""

TOO_WIDE = 100
"""Features per row beyond which an array has probably its rows and columns exchanged: the widest
encoders have 8,192 features, and below 100 rows no score is of use."""


def choose_metric(judging: Judging) -> gb.estimators.MetricSpec:
    """Return the metric of that name, or ``module:name``.

    Refuse options that it would ignore, or that contradict one another.
    """
    name = judging.metric
    try:
        spec = gb.estimators.metric_spec(name)
    except InputError as error:
        if not gb.features.is_entry_point(name):
            specs = [*map(gb.estimators.metric_spec, gb.estimators.metric_names())]
            known = [known for spec in specs for known in (spec.name, *spec.aliases)]
            raise InputError(
                f"must be one that `--metric help` lists, or module:name; got {quoted(name)}."
                f"{meant(name, known)}",
                argument="--metric",
            ) from error
        spec = _own_metric(name)
    if judging.reading.logits and spec.data != "posteriors":
        raise InputError(
            f"is for class probabilities; --metric {spec.name} takes features.", argument="--logits"
        )
    reading = judging.reading
    for role in ("groups", "strata", "shares", "seeds", "row_order") if reading.iid else ():
        if getattr(reading, role) is not None:
            spelt = role.replace("_", "-")
            raise InputError(f"says that rows are independent: leave out --{spelt}.", "--iid")
    for role in ("weights", "download") if reading.encoder is None else ():
        if getattr(reading, role):
            raise InputError("needs --encoder.", argument=f"--{role}")
    if reading.reference_n is not None:
        check_count("--reference-n", reading.reference_n, minimum=2)
        if reading.reference_exact:
            raise InputError("contradicts --reference-n: leave out one.", "--reference-exact")
    return spec


def _own_metric(name: str) -> gb.estimators.MetricSpec:
    """Return the metric that ``module:name`` stands for; only naming it runs the user's code."""
    try:
        with redirect_stdout(sys.stderr):
            target = gb.features.entry_point(name)
    except InputError:
        raise
    except Exception as error:
        what = f"{type(error).__name__}: {said_by(error)}"
        raise InputError(f"{display(name)}: fails when it is imported: {what}.") from error
    if not isinstance(
        target, (gb.SmoothScore, gb.estimators.MetricSpec, gb.estimators.CustomMetric)
    ):
        raise InputError(
            f"{display(name)} is no score: name a genbounds.SmoothScore.", argument="--metric"
        )
    return gb.estimators.metric_spec(target)


def reads_rows(name: str, judging: Judging) -> gb.estimators.MetricSpec:
    """Return how files are read by the command `name`, which needs the rows themselves."""
    return replace(choose_metric(replace(judging, metric="kid")), name=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """The models that a command judges, and the reference if there is one.

    `spec` and `options` are those of the metric; `models` is in the order of the command line;
    `real` is the sample of the reference; `helpers` are samples of partners; `warnings` are about
    where the features of all files came from.
    """

    spec: gb.estimators.MetricSpec
    options: Mapping[str, Any]
    models: dict[str, Input]
    reference: Input | None
    real: Any
    helpers: Sequence[Any]
    warnings: Sequence[gb.Diagnostic]

    @classmethod
    def read(
        cls,
        files: Sequence[Path],
        spec: gb.estimators.MetricSpec,
        judging: Judging,
        counts: Sequence[int] = (),
        *,
        least: int = 1,
        partners: Sequence[Path] = (),
    ) -> Models:
        """Tell the reference from the models and read both; encode what is to be encoded.

        Parameters
        ----------
        files : sequence of Path
            As given.
        spec : MetricSpec
        judging : Judging
        counts : sequence of int
            How many models there may be; none: `least` or more.
        least : int
        partners : sequence of Path
            Files of partners.
        """
        reading, out = judging.reading, judging.output.out
        given = {} if judging.options is None else asdict(judging.options)
        options = {name: value for name, value in given.items() if value is not None}
        for name in options:
            if name not in spec.options:
                specs = map(gb.estimators.metric_spec, gb.estimators.metric_names())
                legal = listed([other.name for other in specs if name in other.options])
                raise InputError(f"is for --metric {legal}; got {spec.name}.", f"--{name}")
        reference, models, needs = judging.reference, [*files], ""
        if spec.reference == "required":
            needs = "a reference and "
            if reference is None:
                reference, *models = files
        if not (len(models) >= least if not counts else len(models) in counts):
            wanted = "at least " + ("one model" if least == 1 else "two models")
            if counts:
                wanted = " or ".join(f"{count} model{'s' * (count > 1)}" for count in counts)
            got = "1 file" if len(files) == 1 else f"{len(files)} files"
            raise InputError(f"--metric {spec.name} takes {needs}{wanted}; got {got}.")
        models += partners
        paths = [*([] if reference is None else [reference]), *models]
        encoding = (
            nullcontext() if reading.encoder is None else open_encoder(reading, paths, out=out)
        )
        with encoding as encoder:
            inputs = read_inputs(reference, models, spec, reading, encoder)
        warnings = origin_warnings({shown(file.name): file.origin for file in inputs})
        real = None if reference is None else inputs.pop(0)
        helpers = [inputs.pop().sample for _ in partners][::-1]
        return cls(
            spec=spec,
            options=options,
            models={file.name: file for file in inputs},
            reference=real,
            real=None if real is None else real.sample,
            helpers=helpers,
            warnings=warnings,
        )

    @property
    def samples(self) -> dict[str, Any]:
        """The sample of every model."""
        return {name: file.sample for name, file in self.models.items()}

    @property
    def inputs(self) -> list[Input]:
        """All files, the reference first."""
        return [*(() if self.reference is None else [self.reference]), *self.models.values()]

    @property
    def doubts(self) -> list[gb.Diagnostic]:
        """What is implausible about any file, once."""
        return list(dict.fromkeys(doubt for file in self.models.values() for doubt in file.doubts))

    def estimates(
        self,
        *,
        estimator: str = "debiased",
        partners: Mapping[str, Any] | None = None,
        done: Callable[[str, gb.estimators.Estimate], None] | None = None,
    ) -> tuple[dict[str, gb.estimators.Estimate], gb.estimators.Prepared]:
        """Estimate the score of every model by the metric, prepared for these samples.

        `partners` as for `compare`; `done` is called with each as it comes. Each carries what is
        implausible about its file.
        """
        samples = {name: file.sample for name, file in self.models.items()}
        reference = None if self.spec.reference == "none" else self.real
        prepared = self.spec.prepared(reference, self.options, list(samples.values()))
        found: dict[str, gb.estimators.Estimate] = {}
        with progress("scoring") as advance:

            def scored(name: str, estimate: gb.estimators.Estimate) -> None:
                found[name] = estimate.warned(*self.models[name].doubts)
                if done is not None:
                    done(name, found[name])
                advance(len(found), len(self.models), name)

            gb.estimators.estimate_each(
                self.spec, prepared, samples, estimator=estimator, partners=partners, done=scored
            )
        return found, prepared

    @contextmanager
    def named(self, *only: str) -> Iterator[None]:
        """Name the file in an error; of all models, or of these `only`."""
        models = {name: self.models[name] for name in only} or self.models
        names: dict[str, Path | str] = {}
        if self.reference is not None:
            names |= dict.fromkeys(("real", "reference"), self.reference.path)
        if len(models) == 1:
            names |= dict.fromkeys(SAMPLE_ARGUMENTS, next(iter(models.values())).path)
        try:
            with renamed(names):
                yield
        except InputError as error:
            if error.argument == "real_labels" and self.reference is not None:
                where = display(self.reference.path)
                raise InputError(error.text, where, *models) from error
            if error.model not in models:
                raise
            path = display(models[error.model].path)
            if error.argument in SAMPLE_ARGUMENTS:
                raise error.about(path) from error
            text = error.text if error.argument else f"{path}: {error.text}"
            raise InputError(text, error.argument) from error


# --- reading --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One file: its path as given, its short unique name, what it holds.

    `content` is an array (n, d), or `Moments` where the file holds statistics; `sample` is what a
    score takes: the same, or a `Sample` that says how the rows were drawn. `origin` is what the
    file says about where its features came from; `contexts` the context of each row and `classes`
    its class, where they were asked for; `undecided` labels that can be groups or strata; `doubts`
    warnings that it, or the reference, probably holds something else.
    """

    path: Path
    name: str
    content: NDArray[Any] | gb.Moments
    sample: Any
    origin: Mapping[str, str] = field(default_factory=dict)
    contexts: NDArray[Any] | None = None
    classes: NDArray[Any] | None = None
    undecided: NDArray[Any] | None = None
    doubts: tuple[gb.Diagnostic, ...] = ()

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features; statistics have no rows."""
        content = self.content
        return content.shape if isinstance(content, np.ndarray) else (0, content.d)


def read_inputs(
    reference: Path | None,
    models: Sequence[Path],
    metric: gb.estimators.MetricSpec,
    reading: Reading,
    encoder: FolderEncoder | None,
) -> list[Input]:
    """Read the files of one run, the reference first; what is to be encoded is encoded.

    Parameters
    ----------
    reference : Path or None
    models : sequence of Path
    metric : MetricSpec
    reading : Reading
    encoder : FolderEncoder or None

    Raises
    ------
    InputError
        As `genbounds.files.read`; or if two files say that different encoders made them; or if a
        file surely holds something else than it is taken for.
    """
    paths = [*models] if reference is None else [reference, *models]
    # Before anything is read: the files may be large.
    headers = {
        path: gb.files.read_header(path, metric.statistics)
        for path in paths
        if not (path.is_dir() or path.name.lower().endswith(MEDIA))
    }
    files = {path: header for path, header in headers.items() if not header.images}
    shapes = {path: header.shape for path, header in files.items() if header.shape}
    check_same_encoder({display(path): header.origin for path, header in files.items()})
    if metric.data == "features":
        check_widths(shapes)
    sized = [name for name in ("reference_n", "reference_exact") if getattr(reading, name)]
    inputs: list[Input] = []
    for path, name in zip(paths, model_names(paths), strict=True):
        is_model = reference is None or bool(inputs)
        features = path
        if path not in files:
            if encoder is None:
                raise ask_for_encoder(path)
            features = encoder.features(path, name)
        file = replace(_input(features, metric, reading, is_model=is_model), path=path, name=name)
        if sized and not inputs and (is_model or isinstance(file.content, np.ndarray)):
            features_known = f"{display(path)} holds features, whose number is known"
            raise InputError(
                "is for a reference known by its statistics (mu, sigma); "
                f"{'here is no reference' if is_model else features_known}.",
                argument=f"--{sized[0].replace('_', '-')}",
            )
        if is_model and reference is not None:
            file = replace(file, doubts=(*file.doubts, *inputs[0].doubts))
        inputs.append(file)
    if len(shapes) < len(paths):  # the others are known only now
        check_same_encoder({display(file.path): file.origin for file in inputs})
        if metric.data == "features":
            check_widths({file.path: file.shape for file in inputs})
    if any(file.undecided is not None for file in inputs):
        inputs = settle_labels(pair_labels(inputs, referenced=reference is not None))
    if reading.shares is not None:
        inputs = at_shares(inputs, reading.shares, referenced=reference is not None)
    return inputs


def _input(
    path: Path, metric: gb.estimators.MetricSpec, reading: Reading, *, is_model: bool
) -> Input:
    """Read one file, opened once: features and labels are of one moment."""
    with gb.files.contents_of(path) as contents:
        contents.values = metric.data == "values"
        contents.statistics_keys = metric.statistics
        held = contents.read()
        labels: dict[str, NDArray[Any] | None] = {}
        undecided = None
        if isinstance(held, np.ndarray) and not reading.iid:
            labels, undecided = _labels(path, contents, reading, needed=is_model)
        contexts, classes = (
            None
            if getattr(reading, role) is None
            else contents.label(_label_name(path, contents, role, reading))
            for role in ("contexts", "by")
        )
        origin = contents.origin
    content: Any = held
    if isinstance(held, gb.files.Statistics):
        size = {"n": reading.reference_n, "exact": reading.reference_exact}
        content = _moments(path, held, metric, {} if is_model else size)
    elif reading.logits:
        content = _softmax(path, held)
    sample = content
    if isinstance(content, np.ndarray) and (
        reading.iid or any(array is not None for array in labels.values())
    ):
        with renamed({"order": path}):
            sample = gb.Sample(content, **labels)
    doubts = []
    if isinstance(content, np.ndarray) and metric.data == "features" and not origin.get("encoder"):
        (n, d), name = content.shape, shown(str(path))
        if d > TOO_WIDE * n:
            doubts.append(warn_of("rows-for-columns", name=name, d=d, n=n))
        if content.dtype == np.uint8:
            doubts.append(warn_of("bytes-not-features", name=name))
    return Input(
        path=path,
        name="",
        content=content,
        sample=sample,
        origin=origin,
        contexts=contexts,
        classes=classes,
        undecided=undecided,
        doubts=tuple(doubts),
    )


def _moments(
    path: Path, held: gb.files.Statistics, metric: gb.estimators.MetricSpec, size: Mapping[str, Any]
) -> gb.Moments:
    """Return the moments of a file of statistics, of which the command line may say the `size`."""
    if not metric.moments:
        option = "--metric " * (metric.name in gb.estimators.metric_names())
        what = f"{option}{metric.name}"
        raise InputError(
            f"{display(path)}: holds statistics (mu, sigma); {what} needs the features themselves."
        )
    try:
        return gb.Moments.from_statistics(held, **size)
    except InputError as error:
        raise InputError(f"{display(path)}: {error}") from error


def _softmax(path: Path, logits: NDArray[Any]) -> NDArray[Any]:
    """Softmax of every row, in float64; a large result is kept on disk."""
    probable = True

    def softmax() -> Iterator[bytes]:
        nonlocal probable
        for places, block in row_blocks(logits):
            finite = np.isfinite(block).all(axis=1)
            if not finite.all():
                row = places[np.flatnonzero(~finite)[0]]
                raise InputError(
                    f"has NaN or an infinite value in row {row}: drop that row.",
                    argument=display(path),
                )
            with np.errstate(over="ignore"):  # to minus infinity, whose exponential is right
                close = np.abs(block.sum(axis=1) - 1.0) <= POSTERIOR_ATOL
                probable = probable and bool(close.all() and block.min() >= 0.0)
                block -= block.max(axis=1, keepdims=True)
            np.exp(block, out=block)
            block /= block.sum(axis=1, keepdims=True)
            yield block.tobytes()

    made = gb.files.gather(softmax(), dtype=np.dtype(np.float64), shape=logits.shape)
    if probable:
        raise InputError(
            "holds probabilities already (every row sums to 1): leave out --logits.",
            argument=display(path),
        )
    return made


def _labels(
    path: Path, contents: gb.files.Contents, reading: Reading, *, needed: bool
) -> tuple[dict[str, NDArray[Any] | None], NDArray[Any] | None]:
    """Read the groups, strata, seeds and order of a file; one that is not `needed` may have none.

    Labels that nobody called either come apart, where equal numbers of each say that they were
    not drawn at random.
    """
    held = contents.arrays
    names: dict[str, str] = {}
    labels: dict[str, NDArray[Any] | None] = {}
    for role, usual in gb.files.USUAL_LABELS.items():
        asked = getattr(reading, role)
        array = FOLDER_LABELS if asked == FOLDERS else asked
        chosen = next((name for name in usual if name in held), None)
        if asked is not None and (needed or array in held):
            chosen = names[role] = _label_name(path, contents, role, reading)
        labels[role] = None if chosen is None else contents.label(chosen)
    groups, classes = labels["groups"], labels["strata"]
    undecided = None
    # Labels that nobody called strata: are they those of a balanced design?
    if "strata" not in names and "strata" not in held:
        by_design = (
            classes is not None
            and reading.by is None  # else the classes that were asked for are the ones to look at
            and names.get("groups") != FOLDER_LABELS
            and not (groups is not None and go_across(groups, classes))  # groups are what was drawn
        )
        named = by_design and reading.contexts in (FOLDERS, FOLDER_LABELS)  # as classes
        if not (named and _even(classes)):
            labels["strata"], undecided = None, classes if by_design else None
    for role, asked in (("order", reading.row_order), ("seeds", reading.seeds)):
        if asked is not None and (needed or asked in held):
            labels[role] = contents.label(asked)
    if "order" in labels:
        undecided = None  # blocks are the groups
    elif "seeds" in labels and groups is None:  # seeds cross nothing but groups
        labels["groups"], undecided = undecided if _even(undecided) else None, None
    return labels, undecided


def _label_name(path: Path, contents: gb.files.Contents, role: str, reading: Reading) -> str:
    """Return which array of a file the option ``--{role}`` means."""
    asked: str = getattr(reading, role)
    if asked == "features":
        raise InputError("names the features: name an array of one label a row.", f"--{role}")
    if asked != FOLDERS:
        return asked
    if FOLDER_LABELS not in contents.arrays:
        raise InputError(
            f"{display(path)} does not say which sub-folder each row comes from: are there "
            "sub-folders?",
            argument=f"--{role}",
        )
    return FOLDER_LABELS


def model_names(paths: Sequence[Path]) -> list[str]:
    """Short names for files: their stems, lengthened by folders where those coincide."""
    stems = []
    for path in paths:  # a folder has no ending, whatever dots it holds
        stem = path.stem.removesuffix(".tar") if path.name.endswith(".tar.gz") else path.stem
        stems.append(path.name if path.is_dir() else stem)
    names = list(stems)
    longest = max((len(path.parts) for path in paths), default=0)
    for depth in range(2, longest + 2):  # at last with the ending
        counts = Counter(names)
        names = [
            "/".join((*path.parts[-depth:-1], stem)) + path.suffix * (depth > longest)
            if counts[name] > 1
            else name
            for name, path, stem in zip(names, paths, stems, strict=True)
        ]
    for index, name in enumerate(names):
        copies = (f"{name} ({copy})" for copy in count(2))
        names[index] = next(each for each in chain([name], copies) if each not in names[:index])
    return names


def check_widths(shapes: Mapping[Path, tuple[int, int]]) -> None:
    """Refuse files of different numbers of features.

    Parameters
    ----------
    shapes : mapping of Path to tuple of int
        Rows and features of each file; statistics have no rows.

    Raises
    ------
    InputError
        Names both files, and the one that is probably transposed: it has as many rows as another
        one has features.
    """
    suspects = [
        (d / n, one, other)
        for one, (n, d) in shapes.items()
        for other, (_, width) in shapes.items()
        if n == width != d
    ]
    if suspects:
        _, one, other = max(suspects, key=lambda found: found[0])  # the widest for its height
        n, d = shapes[one]
        raise InputError(
            f"has {n} rows of {d} features, and {display(other)} has {n} features: rows and "
            "columns are probably exchanged. Save one row per sample, one column per feature.",
            argument=display(one),
        )
    (first, (_, width)), *others = shapes.items() or [(Path(), (0, 0))]
    for one, (_, d) in others:
        check_same_dimension(display(one), d, display(first), width)


# --- labels that nobody called groups or strata ---------------------------------------------------
# With strata, the classes would be there again in a repetition, and their part of the variance is
# no error; with groups, others would. The intervals of strata are the narrower ones, so that they
# are taken only where both samples have the same classes, with many rows each.

MANY_UNITS = 30
"""So many labels of at most ..."""

FEW_ROWS = 20
"""... so many rows each are prompts, patients or clips; classes have more rows."""


def _even(labels: NDArray[Any] | None) -> bool:
    return labels is not None and balanced(np.unique(labels, return_counts=True)[1])


def pair_labels(inputs: Sequence[Input], *, referenced: bool) -> list[Input]:
    """Pair rows of one label where there are as many of each as in the reference, and say so.

    Of other numbers only even ones are no accident: the rest may be as random as the rows.
    """
    loose = [None if _even(file.undecided) else file.undecided for file in inputs]
    found = [file if _even(file.undecided) else replace(file, undecided=None) for file in inputs]
    for i in range(1, len(inputs) if referenced else 0):
        pairs = class_pairs(loose[i], loose[0])
        if pairs is None or any(isinstance(inputs[at].sample, gb.Sample) for at in (i, 0)):
            continue
        paths = [display(inputs[at].path) for at in (i, 0)]
        complain(
            f"{paths[0]}: as many rows of each label as in {paths[1]}: rows of one label are "
            "taken as pairs (--iid: as independent)"
        )
        for at, groups in zip((i, 0), pairs, strict=True):
            found[at] = replace(found[at], sample=gb.Sample(inputs[at].content, groups=groups))
    return found


def settle_labels(inputs: Sequence[Input]) -> list[Input]:
    """Take the undecided labels of each file as groups or strata, and say so.

    Raises
    ------
    InputError
        If they can be either.
    """
    classes = [_classes(file) for file in inputs]
    settled = []
    for file, names in zip(inputs, classes, strict=True):
        if file.undecided is None:
            settled.append(file)
            continue
        sample = file.sample if isinstance(file.sample, gb.Sample) else gb.Sample(file.sample)
        units, counts = np.unique(file.undecided, return_counts=True)
        word = FOLDERS if gb.features.is_media(file.path) else FOLDER_LABELS
        rows = f"{counts.min()}" if np.ptp(counts) == 0 else f"{counts.min()} to {counts.max()}"
        found = f"{display(file.path)}: {units.size} {word} of {rows} rows each"
        few = units.size >= MANY_UNITS and counts.max() <= FEW_ROWS
        if few and sample.groups is None:
            taken, other, labels = "groups", "strata", {"groups": file.undecided}
        elif names and classes.count(names) > 1:
            taken, other = "strata", "groups"
            labels = {"groups": sample.groups, "strata": file.undecided}
        else:
            raise InputError(
                f"{found} can be groups (others would be drawn next time) or strata (the same "
                f"classes again): pass --groups {word} or --strata {word}, or --iid for neither."
            )
        complain(f"{found} are taken as {taken} (--{other} {word} for {other})")
        settled.append(replace(file, sample=gb.Sample(sample.features, **labels)))
    return settled


def _classes(file: Input) -> frozenset[str]:
    """Return the names of the classes of a file, if all have many rows."""
    labels = file.undecided
    if labels is None:
        labels = getattr(file.sample, "strata", None)
    if labels is None:
        return frozenset()
    names, counts = np.unique(labels, return_counts=True)
    return frozenset(map(str, names)) if counts.min() > FEW_ROWS else frozenset()


def at_shares(inputs: Sequence[Input], asked: str, *, referenced: bool) -> list[Input]:
    """Score classes at the shares that ``--shares`` asks for: equal, the reference's, a file's.

    Raises
    ------
    InputError
        If a file has no classes, or others; or the file of shares is none.
    """
    if asked == "reference" and not referenced:
        raise InputError("is 'reference', and here is no reference.", argument="--shares")
    shares: Any = asked if asked in ("equal", "reference") else _shares_in(Path(asked))
    scored = [*inputs[:1]] if asked == "reference" else []
    for file in inputs[len(scored) :]:
        sample, path = file.sample, display(file.path)
        if not isinstance(sample, gb.Sample) or sample.strata is None:
            raise InputError(
                f"{path} does not say which class each row is of: pass --strata.",
                argument="--shares",
            )
        chosen = shares
        if not isinstance(shares, str):  # keys of JSON are texts
            texts = {str(name): name for name in np.unique(sample.strata).tolist()}
            chosen = {texts.get(name, name): share for name, share in shares.items()}
        labels: dict[str, Any] = {"groups": sample.groups, "strata": sample.strata}
        try:
            sample = gb.Sample(sample.features, **labels, shares=chosen)
        except InputError as error:
            raise InputError(f"{path}: {error}", argument="--shares") from error
        scored.append(replace(file, sample=sample))
    return scored


def _shares_in(path: Path) -> dict[str, float]:
    try:
        return {name: float(x) for name, x in json.loads(path.read_text("utf-8")).items()}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise InputError(
            "must be 'equal', 'reference' or a JSON file with a number for every class; "
            f"{display(path)}: {said_by(error)}.",
            argument="--shares",
        ) from error
