"""Options that several commands share, and what the shell offers as their values."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated

import typer

from genbounds.estimators import metric_names, metric_spec
from genbounds.files import display
from genbounds.files._errors import reason_of
from genbounds.validation import InputError


def offer(values: str | Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Return a completion from the values, as in ``"a|b"``, or from a function that lists them."""

    def matching(incomplete: str) -> list[str]:
        known = values.split("|") if isinstance(values, str) else values()
        return [value for value in known if value.startswith(incomplete)]

    return matching


def statements() -> Iterable[str]:
    """List the ids of the catalogue, which is loaded only when somebody asks."""
    from genbounds.bounds import catalog

    return catalog()


def policies() -> Iterable[str]:
    """List the policies of a selection."""
    from genbounds.select import POLICIES

    return POLICIES


GROWING = tuple(name for name in metric_names() if not metric_spec(name).fixed_size)
"""The metrics that selection and planning take."""


def metric_lines(names: Iterable[str], *, own: bool = True) -> str:
    """Return the end of a help text: a line for each metric."""
    lines = {name: metric_spec(name).summary for name in names}
    if own:
        lines["module:name"] = "a score of your own (a SmoothScore)"
    width = max(map(len, lines))
    return "Metrics:\n\n\b\n" + "".join(
        f"{name:<{width}}  {summary}\n" for name, summary in lines.items()
    )


def _metrics(context: typer.Context, incomplete: str) -> list[str]:
    """Complete the metrics of the command that is typed."""
    names = GROWING if context.info_name in ("select", "plan") else metric_names()
    return [name for name in names if name.startswith(incomplete)]


Metric = Annotated[
    str,
    typer.Option(
        "--metric",
        metavar="NAME",
        autocompletion=_metrics,
        help="Score by which the models are judged: one of those listed below.",
    ),
]
KERNELS = "rbf|laplace|cosine|polynomial"
Kernel = Annotated[
    str | None,
    typer.Option(
        "--kernel",
        metavar=KERNELS,
        autocompletion=offer(KERNELS),
        help="Kernel of vendi and rke.",
        show_default="rbf",
    ),
]
Bandwidth = Annotated[
    float | None,
    typer.Option(
        "--bandwidth",
        metavar="S",
        help="Bandwidth of the rbf or laplace kernel, of cmmd and of kad.",
        show_default="median distance of the reference, or of all models; cmmd: 10",
    ),
]
Order = Annotated[
    float | None,
    typer.Option(
        "--order",
        metavar="A",
        help="Rényi order of the Vendi score (> 0, or inf).",
        show_default="1",
    ),
]
Neighbours = Annotated[
    int | None,
    typer.Option(
        "--k",
        metavar="K",
        help="Neighbours of precision, recall, density, coverage and f_score.",
        show_default="5",
    ),
]
Level = Annotated[
    float, typer.Option("--level", metavar="L", help="Confidence level of the intervals.")
]
Reference = Annotated[
    Path | None,
    typer.Option(
        "--reference",
        metavar="FILE",
        help="The real data; every other file is then a model.",
        show_default=False,
    ),
]
Logits = Annotated[
    bool,
    typer.Option("--logits", help="The files hold logits, not probabilities: apply a softmax."),
]
Seed = Annotated[int, typer.Option("--seed", metavar="S", help="Seed of all random numbers.")]

Groups = Annotated[
    str | None,
    typer.Option(
        "--groups",
        metavar="NAME",
        help="Array of the files that says which rows depend on one another (one prompt, one "
        "clip); 'folders': each sub-folder of images is a group.",
        show_default="groups, if it is there",
    ),
]
Strata = Annotated[
    str | None,
    typer.Option(
        "--strata",
        metavar="NAME",
        help="Array of the files that says which class each row is of, where the number of rows "
        "per class was fixed; 'folders': each sub-folder of images is a class.",
        show_default="strata, if it is there; labels of equal numbers are groups or strata: which, "
        "is said or asked for",
    ),
]
Iid = Annotated[
    bool,
    typer.Option(
        "--iid",
        help="The rows are independent: ignore groups and strata, do not look for duplicates.",
    ),
]
ReferenceN = Annotated[
    int | None,
    typer.Option(
        "--reference-n",
        metavar="N",
        help="Number of samples behind a reference given as statistics that do not say it.",
        show_default=False,
    ),
]
ReferenceExact = Annotated[
    bool,
    typer.Option("--reference-exact", help="The statistics of the reference are exactly known."),
]


def _writable(out: Path | None) -> Path | None:
    """Refuse a folder that cannot be written before hours are spent on what it is for."""
    if out is not None:
        place = next((one for one in (out, *out.parents) if os.path.exists(one)), out)
        try:
            with tempfile.TemporaryFile(dir=place):
                pass
        except OSError as error:
            raise InputError(f"{display(out)}: cannot be written: {reason_of(error)}.") from error
    return out


Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="DIR",
        callback=_writable,
        help="Folder for results.json and the page report.html.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Also print how each score was computed.")]

EncoderName = Annotated[
    str | None,
    typer.Option(
        "--encoder",
        metavar="NAME",
        help="Encoder of images or texts: inception, inception:clean, inception:tf, dinov2, "
        "clip, timm:MODEL, torchvision:MODEL, open_clip:MODEL, "
        "pytorch-fid:2048, sentence-transformers:MODEL, torchscript:FILE, onnx:FILE or "
        "module:function.",
        show_default=False,
    ),
]
Weights = Annotated[
    Path | None,
    typer.Option(
        "--weights",
        metavar="PATH",
        help="The encoder's weights: a file, or a folder to search. "
        "'random' takes untrained weights, to try a command out.",
        show_default="the library's own cache",
    ),
]
Device = Annotated[
    str, typer.Option("--device", metavar="D", help="Device of the encoder: cpu, cuda, cuda:1 …")
]
_PRECISIONS = "float32|bfloat16|float16"
Precision = Annotated[
    str,
    typer.Option(
        "--precision",
        metavar=_PRECISIONS,
        autocompletion=offer(_PRECISIONS),
        help="Precision of the encoder; bfloat16 and float16 are mixed precision.",
    ),
]
