"""What commands that score models share: options of metrics, reading, errors that name a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from genbounds._text import display, listed, shown
from genbounds.cli._encoding import open_encoder
from genbounds.cli._input import Input
from genbounds.cli._inputs import load
from genbounds.cli._naming import options, renamed
from genbounds.cli._options import KernelOptions, Reading
from genbounds.cli._plausible import suspicions
from genbounds.estimators import (
    Estimate,
    MetricSpec,
    Prepared,
    estimate_each,
    metric_names,
    metric_spec,
    prepare_all,
)
from genbounds.origins import origin_warnings
from genbounds.results import Diagnostic
from genbounds.validation import InputError

SAMPLE_ARGUMENTS = ("fake", "probs", "x")
"""What the library calls the sample of one model."""


def metric_options(spec: MetricSpec, given: KernelOptions) -> dict[str, Any]:
    """Return the options that were `given`, refusing those that the metric would ignore."""
    chosen = {name: value for name, value in asdict(given).items() if value is not None}
    for name in chosen:
        if name not in spec.options:
            legal = [other for other in metric_names() if name in metric_spec(other).options]
            raise InputError(
                f"is for --metric {listed(legal)}; got {spec.name}.", argument=f"--{name}"
            )
    return chosen


def reads_rows(name: str) -> MetricSpec:
    """Return how files are read by the command `name`, which needs the rows themselves."""
    return replace(metric_spec("kid"), name=name)


def reference_first(
    files: Sequence[Path],
    reference: Path | None,
    spec: MetricSpec,
    counts: Sequence[int] = (),
    *,
    least: int = 1,
) -> list[Path]:
    """Return the files in order: the reference, where there is one, and the models.

    Parameters
    ----------
    files : sequence of Path
        As given.
    reference : Path or None
        That of ``--reference``.
    spec : MetricSpec
    counts : sequence of int
        How many models there may be; none: `least` or more.
    least : int
    """
    first = spec.reference == "required" and reference is None
    models = len(files) - first
    if models >= least if not counts else models in counts:
        return [*files] if reference is None else [reference, *files]
    wanted = "at least " + ("one model" if least == 1 else "two models")
    if counts:
        wanted = " or ".join(f"{count} model{'s' * (count > 1)}" for count in counts)
    got = "1 file" if len(files) == 1 else f"{len(files)} files"
    needs = "a reference and " if spec.reference == "required" else ""
    raise InputError(f"--metric {spec.name} takes {needs}{wanted}; got {got}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """The models that a command judges, and the reference if there is one.

    `spec` and `options` are those of the metric; `models` is in the order of the command line.
    """

    spec: MetricSpec
    options: Mapping[str, Any]
    models: dict[str, Input]
    reference: Input | None

    @classmethod
    def read(
        cls,
        paths: Sequence[Path],
        spec: MetricSpec,
        reading: Reading,
        *,
        out: Path | None,
        referenced: bool,
        options: Mapping[str, Any] | None = None,
    ) -> Models:
        """Read the files; encode what is to be encoded.

        Parameters
        ----------
        paths : sequence of Path
            The first is that of the reference if they are `referenced`.
        spec, reading, out
            As for `load` and `open_encoder`.
        options : mapping, optional
            Of the metric.
        """
        with open_encoder(reading, out=out) as encoder:
            inputs = load(paths, spec, reading, referenced=referenced, encoder=encoder)
        reference = inputs.pop(0) if referenced else None
        models = {one.name: one for one in inputs}
        return cls(spec=spec, options=options or {}, models=models, reference=reference)

    @property
    def samples(self) -> dict[str, Any]:
        """The sample of every model."""
        return {name: one.sample for name, one in self.models.items()}

    @property
    def real(self) -> Any:
        """The sample of the reference, or None."""
        return None if self.reference is None else self.reference.sample

    @property
    def inputs(self) -> list[Input]:
        """All files, the reference first."""
        return [*(() if self.reference is None else [self.reference]), *self.models.values()]

    def doubts(self, name: str) -> tuple[Diagnostic, ...]:
        """Return what is implausible about the file of a model, or about the reference."""
        if self.spec.data != "features":
            return ()
        shared = () if self.reference is None else suspicions(self.reference)
        return (*suspicions(self.models[name]), *shared)

    def all_doubts(self) -> list[Diagnostic]:
        """Return what is implausible about any file, once."""
        return list(dict.fromkeys(doubt for name in self.models for doubt in self.doubts(name)))

    def origins(self) -> list[Diagnostic]:
        """Return warnings about where the features of all files came from."""
        return origin_warnings({shown(one.name): one.origin for one in self.inputs})

    def prepared(self) -> Prepared:
        """Return the metric with its options, prepared for these samples."""
        return prepare_all(self.spec, self.samples, self.real, self.options)

    def estimates(
        self,
        prepared: Prepared,
        *,
        estimator: str = "debiased",
        done: Callable[[str, Estimate], None] | None = None,
    ) -> dict[str, Estimate]:
        """Estimate the score of every model; call `done` with each as it comes."""
        return estimate_each(self.spec, prepared, self.samples, estimator=estimator, done=done)

    def doubted(self, estimates: Mapping[str, Estimate]) -> dict[str, Estimate]:
        """Return estimates that carry what is implausible about their files."""
        return {name: each.warned(*self.doubts(name)) for name, each in estimates.items()}

    def named(self, *only: str) -> AbstractContextManager[None]:
        """Name the file or the option in an error; of all models, or of these `only`."""
        models = {name: self.models[name] for name in only} or self.models
        return files_named(models, self.reference)

    def named_reference(self) -> AbstractContextManager[None]:
        """Name the file of the reference in an error about a sample."""
        path = "" if self.reference is None else self.reference.path
        return renamed(dict.fromkeys(SAMPLE_ARGUMENTS, path))


OPTIONS = (
    "estimator", "kernel", "bandwidth", "order", "k", "level", "margin", "half_width", "gap",
    "power", "looks", "patience", "min_delta", "folds", "metric", "seed", "confidence", "tolerance",
    "limit",
)  # fmt: skip
"""Arguments of the library that options carry."""


@contextmanager
def files_named(
    models: Mapping[str, Input] | None = None, reference: Input | None = None
) -> Iterator[None]:
    """Name the file or the option in an error instead of the library's argument."""
    models = models or {}
    names: dict[str, Path | str] = {**options(*OPTIONS)}
    if reference is not None:
        names |= dict.fromkeys(("real", "reference"), reference.path)
    if len(models) == 1:
        names |= dict.fromkeys(SAMPLE_ARGUMENTS, next(iter(models.values())).path)
    try:
        with renamed(names):
            yield
    except InputError as error:
        if error.model not in models:
            raise
        path = display(models[error.model].path)
        if error.argument in SAMPLE_ARGUMENTS:
            raise error.about(path) from error
        text = error.text if error.argument else f"{path}: {error.text}"
        raise InputError(text, error.argument) from error
