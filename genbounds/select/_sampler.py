"""One arm with its own random stream, its samples, and what went wrong; the same on disk.

A run is decided by its arms' streams and its settings. So only the samples are recorded: a
continued run is repeated from them, which costs arithmetic but no sample, and ends bit by bit as if
it had never stopped.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds._text import count, display, said_by
from genbounds.arms import Arm
from genbounds.diagnostics import warn_of
from genbounds.estimators import row_ids
from genbounds.files import atomic_write, read_features
from genbounds.results import Diagnostic
from genbounds.samples import Sample, features_of
from genbounds.select._arms import FeatureArm, rows_in_all
from genbounds.select._independence import copies, order_effect
from genbounds.select._selection import ArmStatus
from genbounds.validation import Float, InputError, calling, check_features, check_finite

_FIRST_CAPACITY = 256
_NO_ROWS = np.empty((0, 0))

Labels = dict[str, list[Any]]
"""Group and stratum of each row, by "groups" and "strata"."""

_STATE = "run.json"
_VERSION = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmRecord:
    """What one arm has given so far.

    Attributes
    ----------
    n : int
        Rows kept.
    rng_state : dict
        State of the arm's generator after them.
    digest : str
        Of the rows; empty of none.
    exhausted : bool
    failure : str or None
    retried : list of str
        As in `Sampler`.
    labels : dict of str to list
        Group and stratum of each row ("groups", "strata"), where the arm gives them.
    """

    n: int
    rng_state: dict[str, Any]
    digest: str = ""
    exhausted: bool = False
    failure: str | None = None
    retried: list[str] = field(default_factory=list)
    labels: dict[str, list[Any]] = field(default_factory=dict)


class Sampler:
    """Draws from an arm, checks what comes, keeps it.

    Parameters
    ----------
    name : str
    arm : Arm
    rng : numpy.random.Generator
        This arm's own stream, so that its samples do not depend on when the others are picked.
    limit : int
        Most samples that will be drawn.
    retries : int
        How often a failed draw is repeated before the arm is set aside.
    dtype : numpy.dtype or None
        Type in which the samples are kept; None: as they come.

    Attributes
    ----------
    n : int
        Samples held.
    exhausted : bool
        The arm returned fewer rows than asked: a finite source is at its end. What it gave counts.
    failure : str or None
        Why the arm was set aside.
    retried : list of str
        Reasons of the draws that failed and were repeated; nothing of them was kept.
    """

    def __init__(
        self,
        name: str,
        arm: Arm,
        rng: np.random.Generator,
        *,
        limit: int,
        retries: int,
        dtype: np.dtype[Any] | None = None,
    ) -> None:
        self.name = name
        self.n = 0
        self.exhausted = False
        self.failure: str | None = None
        self.retried: list[str] = []
        self.limit = limit
        self._arm = arm
        self._rng = rng
        self._retries = retries
        self._dtype = dtype
        self._buffer: NDArray[Any] | None = None
        self._fingerprints = array("Q")
        self._labels: Labels = {}
        self._digest = 0, hashlib.blake2b(digest_size=16)  # of so many rows
        self._replayed: tuple[ArmRecord, NDArray[Any]] | None = None
        self._mark = ArmRecord(n=0, rng_state=dict(rng.bit_generator.state))

    @property
    def available(self) -> bool:
        """Whether another sample can be drawn."""
        return not self.exhausted and self.failure is None and self.n < self.limit

    @property
    def spent(self) -> bool:
        """Whether it has given all rows there are, as far as is known without asking for more."""
        return self.exhausted or self.n >= rows_in_all(self._arm)

    @property
    def status(self) -> ArmStatus:
        """Whether the arm is live, and what happened with it."""
        if self.failure is not None:
            return ArmStatus(state="set aside", reason=self.failure)
        remarks = [f"exhausted after {count(self.n, 'sample')}"] if self.spent else []
        if self.retried:
            remarks.append(
                f"{len(self.retried)} failed draws repeated and not used (first: {self.retried[0]})"
            )
        return ArmStatus(state="live", reason="; ".join(remarks))

    @property
    def columns(self) -> int | None:
        """Number of features; None before the first row."""
        return None if self._buffer is None else self._buffer.shape[1]

    @property
    def rows(self) -> NDArray[Any]:
        """All samples so far, read-only, in the order of drawing; (0, 0) before the first."""
        if self._buffer is None:
            return _NO_ROWS
        view = self._buffer[: self.n]
        view.flags.writeable = False
        return view

    @cached_property
    def _file_order(self) -> Diagnostic | None:
        """What recorded rows show in their own order, which their random one hides."""
        return self._arm.doubt() if isinstance(self._arm, FeatureArm) else None

    def dependence(self, n: int, influence: Float | None, *, error: float) -> Diagnostic | None:
        """Say that the first `n` rows are no independent draws, if they show it.

        Recorded rows come in an order that was drawn at random, so that it shows nothing.

        Parameters
        ----------
        n : int
        influence, error
            As for `order_effect`.
        """
        rows = self.rows[:n]
        doubt = self._file_order or copies(rows, self.fingerprints(n))
        if doubt is not None or isinstance(self._arm, FeatureArm):
            return doubt
        return order_effect(rows, influence, error=error)

    @property
    def labelled(self) -> bool:
        """Whether the arm says how its rows were drawn: groups or strata come with them."""
        return bool(self._labels)

    def sample(self, n: int) -> tuple[Any, tuple[Diagnostic, ...]]:
        """Return the first `n` rows, as a `Sample` if the arm labels them, and doubts about it."""
        rows = self.rows[:n]
        if not self.labelled:
            return rows, ()
        labels = {name: np.array(values[:n]) for name, values in self._labels.items()}
        sample = Sample(rows, **labels)
        if sample.strata is None or sample.units_per_stratum().min() >= 2:
            return sample, ()
        del labels["strata"]
        doubt = warn_of("lone-unit", n=n)
        return Sample(rows, **labels), (doubt,)

    def fingerprints(self, n: int) -> NDArray[np.uint64]:
        """Return a number for each of the first `n` rows, the same for rows that are the same."""
        done = len(self._fingerprints)
        if done < n:  # of many batches at once: each costs as much as some hundred rows
            ids = row_ids(self.rows[done:].astype(np.float64))
            self._fingerprints.frombytes(ids.tobytes())
        return np.frombuffer(self._fingerprints, dtype=np.uint64, count=n).copy()

    def pull(self, n: int) -> int:
        """Take up to `n` rows (fewer at the limit), recorded ones first; return how many."""
        wanted = min(n, self.limit - self.n)
        taken = 0
        if self._replayed is not None:
            taken = self._replay(wanted)
            if taken == wanted or not self.available:
                return taken
        return taken + self._draw(wanted - taken)

    def check_columns(self, wanted: int, whose: str) -> None:
        """Take the arm out if its rows have not as many columns as are `wanted`."""
        if self.columns not in (None, wanted):
            self.set_aside(f"its rows have {self.columns} columns, {whose} {wanted}")

    def set_aside(self, reason: str) -> None:
        """Take the arm out of the run; its samples stay counted."""
        self.failure = reason

    def resume(self, record: ArmRecord, rows: NDArray[Any]) -> None:
        """Hand out `rows` of an earlier run before anything is drawn."""
        self._replayed = record, rows
        self.retried = list(record.retried)

    def record(self) -> tuple[ArmRecord, NDArray[Any] | None]:
        """Return what `resume` needs: the state after the last complete draw, and its rows.

        While recorded rows are still being handed out, that record itself.
        """
        if self._replayed is not None:
            return self._replayed[0], None
        mark = self._mark
        if not mark.n:
            return mark, None
        rows = self.rows[: mark.n]
        done, earlier = self._digest
        digest = earlier.copy()
        add_digest(digest, rows[done:])
        self._digest = mark.n, digest
        labels = {name: values[: mark.n] for name, values in self._labels.items()}
        return replace(mark, digest=digest.hexdigest(), labels=labels), rows

    def _draw(self, wanted: int) -> int:
        for attempt in range(self._retries + 1):
            try:
                rows, labels = self._received(self._arm.draw(wanted, self._rng), wanted)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # whatever a user's generator raises, sys.exit included
                if attempt == self._retries:
                    self.set_aside(_reason(error))
                else:
                    self.retried.append(_reason(error))
            else:
                self._append(rows, labels)
                self.exhausted = len(rows) < wanted
                break
        before = self._mark.n
        self._mark = ArmRecord(
            n=self.n,
            rng_state=dict(self._rng.bit_generator.state),
            exhausted=self.exhausted,
            failure=self.failure,
            retried=list(self.retried),
        )
        return self.n - before

    @calling("", "draw")
    def _received(self, drawn: Any, wanted: int) -> tuple[NDArray[Any], Labels]:
        """Check what an arm has returned: the one place where rows enter a run."""
        rows = check_features("draw", features_of(drawn), minimum=0)
        labels = self._labels_of(drawn)
        if rows.shape[0] > wanted:
            raise InputError(f"returned {rows.shape[0]} rows where {wanted} were asked for.")
        if self.columns is not None and rows.shape[1] != self.columns:
            raise InputError(
                f"returned {rows.shape[1]} columns where earlier batches had {self.columns}."
            )
        check_finite("draw", rows)
        if self._dtype is not None and rows.dtype != self._dtype:
            with np.errstate(over="ignore"):  # said in our own words
                rows = rows.astype(self._dtype)
            if not np.isfinite(rows).all():
                raise InputError(
                    f"returned values beyond the range of `dtype` {self._dtype.name}: keep "
                    "the samples in a wider type."
                )
        return rows, labels

    def _labels_of(self, drawn: Any) -> Labels:
        """Return what a `Sample` says of its rows; all batches say the same kinds of things."""
        given: dict[str, NDArray[Any] | None] = {}
        if isinstance(drawn, Sample):
            for name in ("weights", "seeds"):
                if getattr(drawn, name) is not None:
                    raise InputError(f"returned {name}, which a selection does not take.")
            given = dict(zip(("groups", "strata"), drawn.labels, strict=True))
        labels = {name: ids.tolist() for name, ids in given.items() if ids is not None}
        if self.n and labels.keys() != self._labels.keys():
            raise InputError("returned groups or strata in some batches only: give them in all.")
        return labels

    def _replay(self, wanted: int) -> int:
        assert self._replayed is not None
        record, rows = self._replayed
        taken = min(wanted, record.n - self.n)
        if taken:
            batch = slice(self.n, self.n + taken)
            labels = {name: values[batch] for name, values in record.labels.items()}
            self._append(rows[batch], labels)
        # An arm that ended must end at the same draw as it did: at the one that it cut short.
        ended = record.exhausted or record.failure
        if self.n == record.n and (taken < wanted or not ended):
            self.exhausted, self.failure = record.exhausted, record.failure
            self._replayed, self._mark = None, record
            # An arm that keeps count of its rows is told how many are gone. It is given the stream
            # as it was at the start, from which it took its order: nothing has been drawn yet.
            skip = getattr(self._arm, "skip", None)
            if skip is not None:
                skip(record.n, self._rng)
            self._rng.bit_generator.state = record.rng_state
        return taken

    def _append(self, rows: NDArray[Any], labels: Labels) -> None:
        """Keep `rows`, growing the buffer by doubling, and their labels."""
        for name, values in labels.items():
            self._labels.setdefault(name, []).extend(values)
        end, kept = self.n + len(rows), rows[:0] if self._buffer is None else self._buffer
        dtype = np.result_type(kept, rows)
        if self._buffer is None or end > len(kept) or dtype != kept.dtype:
            capacity = min(max(_FIRST_CAPACITY, 2 * len(kept), end), self.limit)
            self._buffer = np.empty((capacity, rows.shape[1]), dtype=dtype)
            self._buffer[: self.n] = kept[: self.n]
        self._buffer[self.n : end] = rows
        self.n = end


def agree_on_columns(samplers: Sequence[Sampler], wanted: int | None, whose: str) -> int:
    """Set aside the arms whose rows have not as many columns as are `wanted`; return how many.

    None: as many as the first arm's.
    """
    if wanted is None:
        widths = (one.columns for one in samplers if one.columns is not None)
        wanted, whose = next(widths, 1), "the first arm has"
    for sampler in samplers:
        sampler.check_columns(wanted, whose)
    return wanted


def all_set_aside(samplers: Iterable[Sampler]) -> str:
    """Say why no arm is left."""
    reasons = "; ".join(f"{sampler.name}: {sampler.failure}" for sampler in samplers)
    return f"every arm had to be set aside ({reasons})."


def _reason(error: BaseException) -> str:
    if isinstance(error, InputError):  # in our own words, of what the arm returned
        return said_by(error, limit=None)
    kind, text = display(type(error).__name__, limit=60), said_by(error, limit=None)
    return f"{kind}: {text}" if text else kind


# --- on disk --------------------------------------------------------------------------------------


class Record:
    """A folder with the rows of every arm (``<position>.npy``) and ``run.json``.

    Parameters
    ----------
    folder : path-like
        Made if missing. That of a run which `identity` tells from this one is refused.
    identity : dict
        What decides the samples: ``settings`` (seed, batch and type), ``arms`` (for every arm, in
        order, a digest of what it draws from; empty if unknown), ``reference`` (its digest).
    """

    def __init__(self, folder: str | os.PathLike[str], identity: dict[str, Any]) -> None:
        self._folder = Path(folder)
        self._identity = identity

    def load(self) -> dict[str, tuple[ArmRecord, NDArray[Any]]]:
        """Return record and rows of every arm that the folder has.

        Raises
        ------
        InputError
            If the folder holds another run, or is damaged.
        """
        records = {}
        for position, (name, fields) in enumerate(self._read().items()):
            record, path, rows = ArmRecord(**fields), self._folder / f"{position}.npy", _NO_ROWS
            if record.n:
                try:
                    rows = read_features(path)[: record.n]
                except InputError as error:
                    raise self._damaged(path, "it is missing or damaged") from error
            digest = hashlib.blake2b(digest_size=16)
            add_digest(digest, rows)
            if record.digest != (digest.hexdigest() if record.n else ""):
                raise self._damaged(path, "its rows are not those that were recorded")
            records[name] = record, rows
        return records

    def save(self, arms: dict[str, tuple[ArmRecord, NDArray[Any] | None]]) -> None:
        """Write everything; a crash in between leaves the folder as it was or complete.

        Rows only ever grow at their end, so that rows newer than ``run.json`` do no harm.
        """
        for position, (_, rows) in enumerate(arms.values()):
            if rows is not None:
                buffer = io.BytesIO()
                np.save(buffer, rows, allow_pickle=False)
                atomic_write(self._folder / f"{position}.npy", buffer.getvalue())
        records = {name: asdict(record) for name, (record, _) in arms.items()}
        state = {"version": _VERSION, "identity": self._identity, "arms": records}
        document = {"checksum": _checksum(state), **state}
        atomic_write(self._folder / _STATE, json.dumps(document, indent=1) + "\n")

    def _read(self) -> dict[str, dict[str, Any]]:
        """Return what is recorded of all arms, after a check that they are this run's."""
        path = self._folder / _STATE
        if self._folder.is_file():
            raise InputError(f"{display(self._folder)}: is a file, not a folder: choose a folder.")
        if not path.exists():
            self._claim()
            return {}
        if not path.is_file():  # a pipe, for whose writer this would wait
            raise self._damaged(path, "it is not a regular file")
        try:
            state = json.loads(path.read_text(encoding="utf-8"))
            version, checksum = state.get("version", 1), state.pop("checksum", None)
        except (OSError, ValueError, AttributeError, RecursionError) as error:
            raise self._damaged(path, f"it is no record of a run ({said_by(error)})") from error
        if version != _VERSION:
            raise self._damaged(path, "it was written by another version of genbounds")
        if checksum != _checksum(state):
            raise self._damaged(path, "it was changed or damaged")
        # What has this checksum was written by `save`: its parts are what they should be.
        self._refuse_another(state["identity"])
        return dict(state["arms"])

    def _refuse_another(self, earlier: dict[str, Any]) -> None:
        """Refuse the record of another run; arms may have been added behind the others."""
        settings, known = self._identity["settings"], earlier["settings"]
        arms, before = self._identity["arms"], earlier["arms"]
        other = sorted(key for key in settings | known if settings.get(key) != known.get(key))
        if list(arms)[: len(before)] != list(before):
            other.append(f"arms {', '.join(map(display, before))}")
        if other:
            raise InputError(
                f"{display(self._folder)} holds a run with other settings ({', '.join(other)}): "
                "use another folder, or repeat the settings of that run."
            )
        changed = [repr(name) for name in before if arms[name] != before[name]]
        if self._identity["reference"] != earlier["reference"]:
            changed.append("the reference")
        if changed:
            raise InputError(
                f"{display(self._folder)} holds a run with other data behind {', '.join(changed)}: "
                "use another folder, or delete this one to start again."
            )

    def _claim(self) -> None:
        """Mark a new folder as this run's, before a file of somebody else is written over."""
        others = sorted(file for file in self._folder.glob("*.npy") if file.stem.isdigit())
        if others:
            raise InputError(
                f"{display(self._folder)} holds {display(others[0].name)}, which is of no recorded "
                "run and would be written over: choose an empty folder."
            )
        self.save({})

    def _damaged(self, path: Path, what: str) -> InputError:
        return InputError(
            f"{display(path)}: {what}: choose an empty folder; or delete "
            f"{display(self._folder)}, if it holds nothing else, to start again."
        )


def _checksum(state: dict[str, Any]) -> str:
    text = json.dumps(state, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def add_digest(digest: hashlib.blake2b, rows: NDArray[Any]) -> None:
    """Digest more `rows`: their values, in whatever type they are kept."""
    for row in rows:
        key = hashlib.blake2b(np.ascontiguousarray(row, dtype=np.float64).data, digest_size=8)
        digest.update(key.digest())
