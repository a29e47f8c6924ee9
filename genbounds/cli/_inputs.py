"""From file names to what the estimators take."""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from genbounds._text import quoted, said_by
from genbounds.cli._options import Encoding, Reading, renamed
from genbounds.cli._plausible import check_widths, probabilities, suspicions
from genbounds.cli._terminal import complain, progress, tidy
from genbounds.features import entry_point, is_entry_point, is_media, media_kind
from genbounds.features.sources import kind_by_name
from genbounds.files import (
    FORMATS,
    Statistics,
    contents_of,
    display,
    labels_named,
    labels_of,
    locked,
    read_header,
)
from genbounds.origins import check_same_encoder
from genbounds.results import Diagnostic
from genbounds.samples import Sample, balanced, go_across
from genbounds.validation import InputError, meant

if TYPE_CHECKING:
    from genbounds.estimators import MetricSpec, Moments
    from genbounds.features import Encoder
    from genbounds.files import Contents

FOLDERS = "folders"
"""As the name of an array: the sub-folder that each image was in, which `features` keeps."""

FOLDER_LABELS = "labels"
"""The array in which `features` keeps it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One file: its path as given, its short unique name, what it holds.

    `content` is an array (n, d), or `Moments` where the file holds statistics; `sample` is what a
    score takes: the same, or a `Sample` that says how the rows were drawn. `origin` is what the
    file says about where its features came from; `contexts` the context of each row and `classes`
    its class, where they were asked for; `undecided` labels that can be groups or strata; `doubts`
    warnings that it probably holds something else.
    """

    path: Path
    name: str
    content: NDArray[Any] | Moments
    sample: Any
    origin: Mapping[str, str] = field(default_factory=dict)
    contexts: NDArray[Any] | None = None
    classes: NDArray[Any] | None = None
    undecided: NDArray[Any] | None = None
    doubts: tuple[Diagnostic, ...] = ()

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features; statistics have no rows."""
        content = self.content
        return content.shape if isinstance(content, np.ndarray) else (0, content.d)


def choose_metric(name: str, *, logits: bool = False) -> MetricSpec:
    """Return the metric of that name, or ``module:name``; refuse options that it would ignore."""
    from genbounds.estimators import metric_names, metric_spec

    try:
        spec = metric_spec(name)
    except InputError as error:
        if not is_entry_point(name):
            known = [
                x for spec in map(metric_spec, metric_names()) for x in (spec.name, *spec.aliases)
            ]
            raise InputError(
                f"must be one that `--metric help` lists, or module:name; got {quoted(name)}."
                f"{meant(name, known)}",
                argument="--metric",
            ) from error
        spec = _own_metric(name)
    if logits and spec.data != "posteriors":
        raise InputError(
            f"is for class probabilities; --metric {spec.name} takes features.",
            argument="--logits",
        )
    return spec


def _own_metric(name: str) -> MetricSpec:
    """Return the metric that ``module:name`` stands for; only naming it runs the user's code."""
    from genbounds.estimators import CustomMetric, MetricSpec, SmoothScore, metric_spec

    try:
        with redirect_stdout(sys.stderr):
            target = entry_point(name)
    except InputError:
        raise
    except Exception as error:
        what = f"{type(error).__name__}: {said_by(error)}"
        raise InputError(f"{display(name)}: fails when it is imported: {what}.") from error
    if not isinstance(target, (SmoothScore, MetricSpec, CustomMetric)):
        raise InputError(
            f"{display(name)} is no score: name a genbounds.SmoothScore.", argument="--metric"
        )
    return metric_spec(target)


def read_inputs(
    reference: Path | None,
    models: Sequence[Path],
    metric: MetricSpec,
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
    if reference is None:
        _refuse_size_of_statistics(reading, "here is no reference")
    paths = [*models] if reference is None else [reference, *models]
    # Before anything is read: the files may be large.
    headers = {
        path: read_header(path, metric.statistics) for path in paths if kind_by_name(path) is None
    }
    files = {path: header for path, header in headers.items() if not header.images}
    check_same_encoder({display(path): header.origin for path, header in files.items()})
    if metric.data == "features":
        check_widths({path: header.shape for path, header in files.items() if header.shape})
    of_models = replace(reading, reference_n=None, reference_exact=False)
    inputs: list[Input] = []
    for given, name in zip(paths, model_names(paths), strict=True):
        path = given if given in files else _encoded(given, name, encoder)
        is_model = reference is None or bool(inputs)
        file = _input(path, metric, of_models if is_model else reading, needed=is_model)
        plain = metric.data == "features" and not file.origin.get("encoder")
        doubts = suspicions(given, file.content) if plain else ()
        inputs.append(replace(file, path=given, name=name, doubts=doubts))
    check_same_encoder({display(file.path): file.origin for file in inputs})
    if metric.data == "features":
        check_widths({file.path: file.shape for file in inputs})
    inputs = settle_labels(inputs)
    if reading.shares is None:
        return inputs
    return at_shares(inputs, reading.shares, referenced=reference is not None)


def _input(path: Path, metric: MetricSpec, reading: Reading, *, needed: bool) -> Input:
    """Read one file, opened once: features and labels are of one moment."""
    with contents_of(path) as contents:
        contents.values = metric.data == "values"
        contents.statistics_keys = metric.statistics
        held = contents.read()
        labels: dict[str, NDArray[Any] | None] = {}
        undecided = None
        if isinstance(held, np.ndarray) and not reading.iid:
            labels, undecided = _labels(path, contents, reading, needed=needed)
            for role, asked in (("seeds", reading.seeds), ("order", reading.row_order)):
                if asked is not None and (needed or asked in contents.arrays):
                    labels[role] = labels_named(contents, asked)
            if "order" in labels:
                undecided = None  # blocks are the groups
            elif "seeds" in labels and labels["groups"] is None:
                labels["groups"], undecided = undecided, None  # seeds cross nothing but groups
        contexts, classes = (
            None
            if getattr(reading, role) is None
            else labels_named(contents, _label_name(path, contents, role, reading))
            for role in ("contexts", "by")
        )
        origin = contents.origin
    content: Any = held
    sample: Any
    if isinstance(held, Statistics):
        content = sample = _moments(path, held, metric, reading)
    else:
        _refuse_size_of_statistics(
            reading, f"{display(path)} holds features, whose number is known"
        )
        if metric.data == "posteriors":
            content = probabilities(path, held, logits=reading.logits)
        told = reading.iid or any(array is not None for array in labels.values())
        with renamed({"order": path}):
            sample = Sample(content, **labels) if told else content
    return Input(
        path=path,
        name="",
        content=content,
        sample=sample,
        origin=origin,
        contexts=contexts,
        classes=classes,
        undecided=undecided,
    )


def _moments(path: Path, held: Statistics, metric: MetricSpec, reading: Reading) -> Moments:
    from genbounds.estimators import Moments, metric_names

    if not metric.moments:
        what = f"--metric {metric.name}" if metric.name in metric_names() else metric.name
        raise InputError(
            f"{display(path)}: holds statistics (mu, sigma); {what} needs the features themselves."
        )
    try:
        return Moments.from_statistics(held, reading.reference_n, exact=reading.reference_exact)
    except InputError as error:
        raise InputError(f"{display(path)}: {error}") from error


def _refuse_size_of_statistics(reading: Reading, reason: str) -> None:
    for option in ("reference_n", "reference_exact"):
        if getattr(reading, option):
            raise InputError(
                f"is for a reference known by its statistics (mu, sigma); {reason}.",
                argument=f"--{option.replace('_', '-')}",
            )


def _labels(
    path: Path, contents: Contents, reading: Reading, *, needed: bool
) -> tuple[dict[str, NDArray[Any] | None], NDArray[Any] | None]:
    """Read the groups and strata of a file; one that is not `needed` may have none.

    Labels that nobody called either come apart, where equal numbers of each say that they were
    not drawn at random.
    """
    held = contents.arrays
    names: dict[str, str | None] = {}
    for role in ("groups", "strata"):
        asked = getattr(reading, role)
        name = FOLDER_LABELS if asked == FOLDERS else asked
        if name is not None and name not in held and not needed:
            name = None
        names[role] = None if name is None else _label_name(path, contents, role, reading)
    labels = labels_of(contents, groups=names["groups"], strata=names["strata"])
    groups, classes = labels.groups, labels.strata
    if names["strata"] is not None or "strata" in held:
        return {"groups": groups, "strata": classes}, None
    # Labels that nobody called strata: are they those of a balanced design?
    by_design = (
        classes is not None
        and reading.by is None  # else the classes that were asked for are the ones to look at
        and names["groups"] != FOLDER_LABELS
        and not (groups is not None and go_across(groups, classes))  # groups are what was drawn
        and balanced(np.unique(classes, return_counts=True)[1])
    )
    if by_design and reading.contexts in (FOLDERS, FOLDER_LABELS):  # named as classes
        return {"groups": groups, "strata": classes}, None
    return {"groups": groups, "strata": None}, classes if by_design else None


def _label_name(path: Path, contents: Contents, role: str, reading: Reading) -> str:
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


def _encoded(path: Path, name: str, encoder: FolderEncoder | None) -> Path:
    """Return the file of features that belongs to what was named."""
    if encoder is None and path.is_dir() and path.suffix.lower() in FORMATS:
        raise InputError(f"{display(path)}: is a folder: give the file inside it.")
    if encoder is None:
        _check_there(path)
        kind = media_kind(path) or "something to encode"
        raise InputError(f"{display(path)} is {kind}: {which_encoder(kind)}.")
    return encoder.features(path, name)


def model_names(paths: Sequence[Path]) -> list[str]:
    """Short names for files: their stems, lengthened by folders where those coincide."""
    stems = []
    for path in paths:  # a folder has no ending, whatever dots it holds
        stem = path.stem.removesuffix(".tar") if path.name.endswith(".tar.gz") else path.stem
        stems.append(path.name if path.is_dir() else stem)
    names = list(stems)
    for depth in range(2, max((len(path.parts) for path in paths), default=0) + 1):
        counts = Counter(names)
        names = [
            "/".join((*path.parts[-depth:-1], stem)) if counts[name] > 1 else name
            for name, path, stem in zip(names, paths, stems, strict=True)
        ]
    counts = Counter(names)
    names = [
        name + path.suffix if counts[name] > 1 else name
        for name, path in zip(names, paths, strict=True)
    ]
    taken: set[str] = set()
    for index, name in enumerate(names):
        unique, copy = name, 1
        while unique in taken:
            copy += 1
            unique = f"{name} ({copy})"
        taken.add(unique)
        names[index] = unique
    return names


# --- labels that nobody called groups or strata ---------------------------------------------------
# With strata, the classes would be there again in a repetition, and their part of the variance is
# no error; with groups, others would. The intervals of strata are the narrower ones, so that they
# are taken only where both samples have the same classes, with many rows each.

MANY_UNITS = 30
"""So many labels of at most ..."""

FEW_ROWS = 20
"""... so many rows each are prompts, patients or clips; classes have more rows."""


def settle_labels(inputs: Sequence[Input]) -> list[Input]:
    """Take the undecided labels of each file as groups or strata, and say so.

    Raises
    ------
    InputError
        If they can be either.
    """
    if all(file.undecided is None for file in inputs):
        return list(inputs)
    classes = [_classes(file) for file in inputs]
    return [
        file
        if file.undecided is None
        else _settled(file, file.undecided, [*classes[:i], *classes[i + 1 :]])
        for i, file in enumerate(inputs)
    ]


def _settled(file: Input, labels: NDArray[Any], others: Sequence[frozenset[str]]) -> Input:
    reading = _reading(file, labels, others)
    units, counts = np.unique(labels, return_counts=True)
    word = FOLDERS if is_media(file.path) else FOLDER_LABELS
    rows = f"{counts.min()}" if np.ptp(counts) == 0 else f"{counts.min()} to {counts.max()}"
    found = f"{display(file.path)}: {units.size} {word} of {rows} rows each"
    if reading is None:
        raise InputError(
            f"{found} can be groups (others would be drawn next time) or strata (the same classes "
            f"again): pass --groups {word} or --strata {word}, or --iid for neither."
        )
    other = "strata" if reading == "groups" else "groups"
    complain(f"{found} are taken as {reading} (--{other} {word} for {other})")
    sample = file.sample if isinstance(file.sample, Sample) else Sample(file.sample)
    groups, strata = (labels, None) if reading == "groups" else (sample.groups, labels)
    return replace(file, sample=Sample(sample.features, groups=groups, strata=strata))


def _reading(
    file: Input, labels: NDArray[Any], others: Sequence[frozenset[str]]
) -> Literal["groups", "strata"] | None:
    """Tell groups from strata; None where both are possible."""
    counts = np.unique(labels, return_counts=True)[1]
    grouped = isinstance(file.sample, Sample) and file.sample.groups is not None
    if counts.size >= MANY_UNITS and counts.max() <= FEW_ROWS:
        return None if grouped else "groups"
    names = _classes(file)
    return "strata" if names and names in others else None


def _classes(file: Input) -> frozenset[str]:
    """Return the names of the classes of a file, if all have many rows."""
    labels = file.sample.strata if isinstance(file.sample, Sample) else None
    labels = labels if file.undecided is None else file.undecided
    if labels is None:
        return frozenset()
    names, counts = np.unique(labels, return_counts=True)
    return frozenset(map(str, names)) if counts.min() > FEW_ROWS else frozenset()


# --- folders and archives turned into files of features -------------------------------------------


@dataclass(frozen=True, slots=True)
class FolderEncoder:
    """An encoder and the folder in which its features are kept."""

    encoder: Encoder
    folder: Path

    def features(self, path: Path, name: str) -> Path:
        """Encode a folder or archive, unless that is done already; return the file of features."""
        from genbounds.features import extract, open_source

        out = self.folder / f"{_plain_name(name)}.safetensors"
        with progress(f"encoding {display(name, limit=40)}") as advance:
            extract(open_source([path]), self.encoder, out=out, progress=advance)
        return out


def which_encoder(kind: str) -> str:
    """Say which encoder turns what is there, in words, into features."""
    if "text" in kind:
        return "add --encoder sentence-transformers:MODEL"
    return "add --encoder inception (the FID of most papers), or inception:clean, dinov2, clip"


def chosen_encoder(
    wanted: Encoding, preprocessing: Mapping[str, Any] | None = None
) -> Encoder | None:
    """Load the encoder that is named, if one is; fetch its weights first, where that is asked."""
    if wanted.encoder is None:
        for option in ("weights", "download"):
            if getattr(wanted, option):
                raise InputError("needs --encoder.", argument=f"--{option}")
        return None
    from genbounds.features import download, load_encoder

    with tidy():
        if wanted.download:
            if wanted.weights is not None:
                raise InputError("names weights: leave it or --download out.", argument="--weights")
            download(wanted.encoder)
        return load_encoder(
            wanted.encoder,
            weights=wanted.weights,
            device=wanted.device,
            precision=wanted.precision,
            preprocessing=preprocessing,
        )


@contextmanager
def open_encoder(
    wanted: Encoding, paths: Iterable[Path | None], *, out: Path | None
) -> Iterator[FolderEncoder | None]:
    """Load the encoder, if one is named, and find a place for its features.

    With `out` they stay in its folder ``features``, and the next run uses them; else they lie in a
    scratch folder until the run ends. What lies at `paths`, or does not, is seen before.
    """
    for path in filter(None, paths if wanted.encoder is not None else ()):
        _check_there(path)
    encoder = chosen_encoder(wanted)
    if encoder is None:
        yield None
    elif out is not None:
        with locked(out / "features", use=display(out)):
            yield FolderEncoder(encoder, out / "features")
    else:
        with tidy(), tempfile.TemporaryDirectory(prefix="genbounds-") as scratch:
            yield FolderEncoder(encoder, Path(scratch))


def _check_there(path: Path) -> None:
    """Refuse what is gone or holds nothing: weights take long to fetch and to load."""
    from genbounds.features import open_source

    if not path.exists() and not is_entry_point(str(path)):
        read_header(path)  # of a pattern as well
    elif path.is_dir() and path.suffix.lower() not in FORMATS:
        open_source([path])


def _plain_name(name: str) -> str:
    return "".join(c if c.isalnum() or c in "-_. ()" else "_" for c in name).lstrip(".") or "_"


def at_shares(inputs: Sequence[Input], asked: str, *, referenced: bool) -> list[Input]:
    """Score classes at the shares that ``--shares`` asks for: equal, the reference's, a file's.

    Raises
    ------
    InputError
        If a file has no classes, or others; or the file of shares is none.
    """
    if asked == "reference" and not referenced:
        raise InputError("is 'reference', and here is no reference.", argument="--shares")
    given = asked if asked in ("equal", "reference") else _shares_in(Path(asked))
    models = inputs[1:] if asked == "reference" else inputs
    return [*inputs[: len(inputs) - len(models)], *(_at(file, given) for file in models)]


def _at(file: Input, shares: str | dict[str, float]) -> Input:
    sample = file.sample
    if not isinstance(sample, Sample) or sample.strata is None:
        raise InputError(
            f"{display(file.path)} does not say which class each row is of: pass --strata.",
            argument="--shares",
        )
    chosen: Any = shares
    if not isinstance(shares, str):  # keys of JSON are texts
        texts = {str(name): name for name in np.unique(sample.strata).tolist()}
        chosen = {texts.get(name, name): share for name, share in shares.items()}
    try:
        told = Sample(sample.features, groups=sample.groups, strata=sample.strata, shares=chosen)
    except InputError as error:
        raise InputError(f"{display(file.path)}: {error}", argument="--shares") from error
    return replace(file, sample=told)


def _shares_in(path: Path) -> dict[str, float]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"must be 'equal', 'reference' or a JSON file that can be read; {display(path)}: "
            f"{said_by(error)}.",
            argument="--shares",
        ) from error
    if not isinstance(found, dict) or not all(
        isinstance(share, (int, float)) for share in found.values()
    ):
        raise InputError(
            f"{display(path)} must hold an object with a number for every class.",
            argument="--shares",
        )
    return found
