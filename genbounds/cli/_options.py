"""Options that several commands share, and what the shell offers as their values.

Nothing heavy is imported here: help and completion need no NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import genbounds as gb


def option(
    metavar: str | None,
    help: str,
    *,
    default: Any = None,
    offers: str | Callable[[], Iterable[str]] | None = None,
    **more: Any,
) -> Any:
    """Declare an option of the name of its parameter or field.

    Parameters
    ----------
    metavar : str or None
        What stands for its value; None: it has none.
    help : str
    default
        ``...``: it must be given.
    offers : str or callable, optional
        Its values, as the shell completes them: ``"a|b"``, or a function that names them. One in
        capitals, or that begins with ``module:``, stands for others.
    **more
        As `typer.Option` takes it; `name`, another name of the option; or `lists`, a function from
        nothing to its values and what each is, for those who ask.
    """
    offers = more.get("lists", offers)
    if offers is not None:

        def completed(incomplete: str) -> list[str]:
            known = offers.split("|") if isinstance(offers, str) else offers()
            plain = [x for x in known if x == x.lower() and not x.startswith("module:")]
            return [value for value in plain if value.startswith(incomplete)]

        more["autocompletion"] = completed
    return field(default=default, metadata={"metavar": metavar, "help": help, **more})


def argument(metavar: str, help: str, *, default: Any = ..., **more: Any) -> Any:
    """Declare an argument, a parameter by place."""
    return option(metavar, help, default=default, **more)


def flag(help: str, **more: Any) -> Any:
    """Declare an option without a value."""
    return option(None, help, default=False, **more)


def choice(values: str, help: str, **more: Any) -> Any:
    """Declare an option that takes one of the values, written as in ``"a|b"``."""
    return option(values, help, offers=values, **more)


def every_metric() -> dict[str, str]:
    """Name all metrics, and say what each is."""
    own = {"module:name": "a score of your own (a SmoothScore)"}
    specs = map(gb.estimators.metric_spec, gb.estimators.metric_names())
    return {spec.name: spec.summary for spec in specs} | own


def growing_metrics() -> dict[str, str]:
    """Name the metrics that selection and planning take."""
    fixed = {x for x in gb.estimators.metric_names() if gb.estimators.metric_spec(x).fixed_size}
    return {name: summary for name, summary in every_metric().items() if name not in fixed}


def mixture_metrics() -> dict[str, str]:
    """Name the metrics of mixtures."""
    from genbounds.mixtures import MIXTURE_METRICS

    known = every_metric()
    return {name: known[name] for name in MIXTURE_METRICS}


def metric_option(lists: Callable[[], Mapping[str, str]], default: str = "fd") -> Any:
    """Declare ``--metric``."""
    help = "Score by which the models are judged: one of those listed below."
    return option("NAME", help, default=default, lists=lists)


def bandwidth_option() -> Any:
    """Declare ``--bandwidth``."""
    return option(
        "S",
        "Bandwidth of the rbf or laplace kernel, of cmmd and of kad.",
        show_default="median distance of the reference, or of all models; cmmd: 10",
    )


def array_option(says: str, folder: str = "", **more: Any) -> Any:
    """Declare an option that names an array of the files, or their sub-folders of images."""
    each = f"; 'folders': each sub-folder of images is a {folder}" if folder else ""
    return option("NAME", f"Array of the files that says {says}{each}.", **more)


def images_option(each: str) -> Any:
    """Declare ``--images``."""
    return option(
        "PATH",
        f"Folder, archive or array of the images that a file is of, for the page: {each}.",
        show_default="as the files say",
    )


def numbers_of(name: str, text: str | None, example: str) -> tuple[float, ...] | None:
    """Read the numbers that an option was given, with commas between them; None if it was not."""
    try:
        return None if text is None else tuple(map(float, text.split(",")))
    except ValueError as error:
        raise gb.InputError(
            f"must be numbers with commas between them, as in {example}; got {text!r}.", name
        ) from error


LEVEL = option("L", "Confidence level of the intervals.", default=0.95)
REFERENCE = option("FILE", "The real data; every other file is then a model.")
SEED = option("S", "Seed of all random numbers.", default=0)


# --- groups of options: a command takes a group as one parameter ----------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """How a command answers; every command has such an `output`, or a `Judging`."""

    as_json: bool = flag("Print one JSON document and nothing else.", name="--json")
    out: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder(Output):
    """The same, with a folder of results."""

    out: Path | None = option("DIR", "Folder for results.json and the page report.html.")


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelOptions:
    """Options of metrics that plans and selections take."""

    kernel: str | None = choice(
        "rbf|laplace|cosine|polynomial", "Kernel of vendi and rke.", show_default="rbf"
    )
    bandwidth: float | None = bandwidth_option()
    order: float | None = option(
        "A", "Rényi order of the Vendi score (> 0, or inf).", show_default="1"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricOptions(KernelOptions):
    """Options of all metrics."""

    k: int | None = option("K", "Neighbours of precision, recall and their like.", show_default="5")


ENCODERS = {
    "inception": "the network and the resizing of pytorch-fid",
    "inception:clean": "those of clean-fid",
    "inception:tf": "those of torch-fidelity and torchmetrics",
    "dinov2": "DINOv2 ViT-L/14 at 224 × 224, through timm",
    "clip": "OpenAI's CLIP ViT-B/32, through open_clip",
    "timm:MODEL": "what its classifier takes",
    "torchvision:MODEL": "what its last linear layer takes",
    "open_clip:MODEL": "its image embedding, not normalised",
    "pytorch-fid:2048": "the network of pytorch-fid, antialiased (64, 192 or 768 features too)",
    "sentence-transformers:MODEL": "its embedding of texts",
    "torchscript:FILE": "its output, (n, d)",
    "onnx:FILE": "its first output, (n, d)",
    "module:function": "what a function of yours returns for a list of images, texts or paths",
}
"""Encoders as `--encoder help` lists them, and the features that each gives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """What turns images or texts into features."""

    encoder: str | None = option(
        "NAME",
        f"Encoder of images or texts: {', '.join(ENCODERS)}. 'help' lists them, a line each.",
        lists=lambda: ENCODERS,
    )
    weights: Path | None = option(
        "PATH",
        "The encoder's weights: a file, or a folder to search. 'random' takes untrained weights, "
        "to try a command out.",
        show_default="the library's own cache",
    )
    device: str = option("D", "Device of the encoder: cpu, cuda, cuda:1 …", default="cpu")
    precision: str = choice(
        "float32|bfloat16|float16",
        "Precision of the encoder; bfloat16 and float16 are mixed precision.",
        default="float32",
    )
    download: bool = flag("Fetch the encoder's published weights, unless they are in a cache.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading(Encoding):
    """How files are read, and how their samples were drawn.

    Attributes
    ----------
    logits : bool
        Whether files of probabilities hold logits.
    groups, strata : str or None
        Arrays of the files, or "folders"; None: those of the usual names, where they are there.
    iid : bool
        The rows are independent, whatever the files hold.
    reference_n : int or None
        Samples behind a reference that is known by its statistics.
    reference_exact : bool
        Those statistics are exact.
    contexts, by : str or None
        Array of the files that says which context, or class, each row belongs to, or "folders".
    row_order : str or None
        Array of the files that says the place of each row in its series.
    seeds : str or None
        Array of the files that says which seed each row is of.
    shares : str or None
        Of the classes: "equal", "reference", or a file.
    """

    logits: bool = False
    groups: str | None = array_option(
        "which rows depend on one another (one prompt, one clip)",
        "group",
        show_default="groups, if it is there",
    )
    strata: str | None = array_option(
        "which class each row is of, where the number of rows per class was fixed",
        "class",
        show_default="strata, if it is there; labels of equal numbers are groups or strata: "
        "which, is said or asked for",
    )
    iid: bool = flag(
        "The rows are independent: ignore groups and strata, do not look for duplicates."
    )
    reference_n: int | None = None
    reference_exact: bool = False
    contexts: str | None = None
    by: str | None = None
    seeds: str | None = None
    row_order: str | None = None
    shares: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreReading(Reading):
    """The same, where files may hold statistics or probabilities as well."""

    logits: bool = flag("The files hold logits, not probabilities: apply a softmax.")
    reference_n: int | None = option(
        "N", "Number of samples behind a reference given as statistics that do not say it."
    )
    reference_exact: bool = flag("The statistics of the reference are exactly known.")


@dataclass(frozen=True, slots=True, kw_only=True)
class SharesReading(ScoreReading):
    """The same, where classes may have other shares, seeds cross groups, rows stand in a row."""

    seeds: str | None = array_option(
        "which seed each row is of, where all groups have the same seeds"
    )
    row_order: str | None = array_option(
        "the place of each row in its series (frames of a video, steps of a chain), within its "
        "group if there are groups"
    )
    shares: str | None = option(
        "SHARES",
        "Score at these shares of the classes (--strata): 'equal', 'reference' (models at the "
        "reference's), or a JSON file {class: share}.",
        show_default="those of the rows",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """What the commands have in common that judge models by their samples."""

    reference: Path | None = None
    metric: str = "fd"
    options: KernelOptions | None = None
    level: float = 0.95
    reading: Reading
    output: Folder
    verbose: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VerboseJudging(Judging):
    """The same, where scores are printed."""

    verbose: bool = flag("Also print how each score was computed.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreJudging(VerboseJudging):
    """The same, where files may hold statistics or probabilities as well."""

    reading: ScoreReading


@dataclass(frozen=True, slots=True, kw_only=True)
class Planning(VerboseJudging):
    """The same, by a metric that can be planned."""

    reference: Path | None = REFERENCE
    metric: str = metric_option(growing_metrics)
    options: KernelOptions
    level: float = LEVEL
    reading: SharesReading


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring(Planning):
    """The same, for all metrics."""

    metric: str = metric_option(every_metric)
    options: MetricOptions
