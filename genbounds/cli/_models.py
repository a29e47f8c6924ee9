"""What commands that score models share: options of metrics, reading, errors that name a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from genbounds._text import display, listed, shown
from genbounds.cli._inputs import Input, open_encoder, read_inputs
from genbounds.cli._options import KernelOptions, Planning, Reading, renamed
from genbounds.cli._terminal import progress
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
from genbounds.validation import InputError, check_open_unit

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


def reference_and_models(
    files: Sequence[Path],
    reference: Path | None,
    spec: MetricSpec,
    counts: Sequence[int] = (),
    *,
    least: int = 1,
) -> tuple[Path | None, list[Path]]:
    """Tell the reference, where there is one, from the models.

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
    models = [*files]
    if spec.reference == "required" and reference is None:
        reference, models = files[0], models[1:]
    if len(models) >= least if not counts else len(models) in counts:
        return reference, models
    wanted = "at least " + ("one model" if least == 1 else "two models")
    if counts:
        wanted = " or ".join(f"{count} model{'s' * (count > 1)}" for count in counts)
    got = "1 file" if len(files) == 1 else f"{len(files)} files"
    needs = "a reference and " if spec.reference == "required" else ""
    raise InputError(f"--metric {spec.name} takes {needs}{wanted}; got {got}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """The models that a command judges, and the reference if there is one.

    `spec` and `options` are those of the metric; `models` is in the order of the command line;
    `real` is the sample of the reference; `warnings` are about where the features of all files
    came from.
    """

    spec: MetricSpec
    options: Mapping[str, Any]
    models: dict[str, Input]
    reference: Input | None
    real: Any
    warnings: Sequence[Diagnostic]

    @classmethod
    def read(
        cls,
        reference: Path | None,
        models: Sequence[Path],
        spec: MetricSpec,
        reading: Reading,
        *,
        out: Path | None,
        options: Mapping[str, Any] | None = None,
    ) -> Models:
        """Read the files; encode what is to be encoded.

        Parameters
        ----------
        reference, models, spec, reading, out
            As for `read_inputs` and `open_encoder`.
        options : mapping, optional
            Of the metric.
        """
        with open_encoder(reading, [reference, *models], out=out) as encoder:
            inputs = read_inputs(reference, models, spec, reading, encoder)
        warnings = origin_warnings({shown(file.name): file.origin for file in inputs})
        real = None if reference is None else inputs.pop(0)
        return cls(
            spec=spec,
            options=options or {},
            models={file.name: file for file in inputs},
            reference=real,
            real=None if real is None else real.sample,
            warnings=warnings,
        )

    @classmethod
    def judged(
        cls,
        files: Sequence[Path],
        judging: Planning,
        spec: MetricSpec,
        counts: Sequence[int] = (),
        *,
        least: int = 1,
    ) -> Models:
        """Read the files of a command, as for `reference_and_models`."""
        check_open_unit("--level", judging.level)
        options = metric_options(spec, judging.options)
        reference, models = reference_and_models(
            files, judging.reference, spec, counts, least=least
        )
        out = judging.output.out
        return cls.read(reference, models, spec, judging.reading, out=out, options=options)

    @property
    def samples(self) -> dict[str, Any]:
        """The sample of every model."""
        return {name: file.sample for name, file in self.models.items()}

    @property
    def inputs(self) -> list[Input]:
        """All files, the reference first."""
        return [*(() if self.reference is None else [self.reference]), *self.models.values()]

    def doubts(self, name: str) -> tuple[Diagnostic, ...]:
        """Return what is implausible about the file of a model, or about the reference."""
        shared = () if self.reference is None else self.reference.doubts
        return (*self.models[name].doubts, *shared)

    def all_doubts(self) -> list[Diagnostic]:
        """Return what is implausible about any file, once."""
        return list(dict.fromkeys(doubt for name in self.models for doubt in self.doubts(name)))

    def estimates(
        self,
        *,
        estimator: str = "debiased",
        done: Callable[[str, Estimate], None] | None = None,
    ) -> tuple[dict[str, Estimate], Prepared]:
        """Estimate the score of every model by the metric, prepared for these samples.

        `done` is called with each as it comes; at the end each carries what is implausible about
        its file.
        """
        prepared = prepare_all(self.spec, self.samples, self.real, self.options)
        names = list(self.models)
        with progress("scoring") as advance:

            def scored(name: str, estimate: Estimate) -> None:
                if done is not None:
                    done(name, estimate)
                advance(names.index(name) + 1, len(names), name)

            found = estimate_each(
                self.spec, prepared, self.samples, estimator=estimator, done=scored
            )
        return {name: each.warned(*self.doubts(name)) for name, each in found.items()}, prepared

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
            if error.model not in models:
                raise
            path = display(models[error.model].path)
            if error.argument in SAMPLE_ARGUMENTS:
                raise error.about(path) from error
            text = error.text if error.argument else f"{path}: {error.text}"
            raise InputError(text, error.argument) from error
