"""Archives of images, read member by member and never unpacked."""

from __future__ import annotations

import gzip
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any

from genbounds.features._encoder import Kind
from genbounds.features.sources._images import IMAGES, is_image
from genbounds.features.sources._source import Item, Source, ending_of, readable
from genbounds.files import check_bomb, display, open_zip
from genbounds.validation import InputError

ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")
# An image of Pillow's largest legal size takes less; more is no image.
_LARGEST_MEMBER = 1 << 30
_LARGEST_READ = 1 << 24


class _Archive(Source):
    kind: Kind = "images"

    def __init__(self, path: Path) -> None:
        self._path = path

    def _label(self, name: str) -> str:
        return f"{display(self._path)} ({display(name, limit=80)})"

    def _empty(self) -> InputError:
        return InputError(f"{display(self._path)}: has no images ({', '.join(IMAGES)}).")

    def _check_size(self, name: str, size: int, packed: int) -> None:
        if size > _LARGEST_MEMBER:
            raise InputError(f"{self._label(name)}: is larger than any image: take it out.")
        check_bomb(self._label(name), size, packed, "images")


class Zip(_Archive):
    """The images in a zip archive, in the order of their names."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        with open_zip(path) as archive:
            members = sorted(archive.filelist, key=lambda member: member.filename)
            for member in members:
                # Compare both names of what is no image: one flipped bit, and it was one. Those of
                # an image are compared when it is read.
                if not is_image(member.filename):
                    with suppress(RuntimeError):  # it has a password, or is packed in no known way
                        archive.open(member).close()
        self._members = [member for member in members if is_image(member.filename)]
        self._names = [member.filename for member in self._members]
        if not self._names:
            raise self._empty()
        self.count = len(self._names)

    def items(self, start: int = 0) -> Iterator[Item]:
        with readable(self._path), open_zip(self._path) as archive:
            for member in self._members[start:]:
                yield self._item(archive, member)

    def pick(self, numbers: Iterable[int]) -> Iterator[tuple[int, Item]]:
        """Yield the items of these `numbers` from the archive, opened once."""
        wanted = sorted(number for number in set(numbers) if number < len(self._members))
        with suppress(InputError), readable(self._path), open_zip(self._path) as archive:
            for number in wanted:
                with suppress(InputError):
                    yield number, self._item(archive, self._members[number])

    def _item(self, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Item:
        label = self._label(member.filename)
        self._check_size(member.filename, member.file_size, member.compress_size)
        try:
            return Item(label, archive.read(member))
        except Exception as error:  # every way of packing has its own
            raise InputError(
                f"{label}: cannot be read ({display(error, limit=80)}): "
                "write the archive again, without a password."
            ) from error


class Tar(_Archive):
    """The images in a tar archive, a webdataset shard for one, in their order there.

    Read as a stream: no index is kept. A compressed archive is not counted beforehand, which would
    unpack it once more.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        if ending_of(path) == ".tar":
            self.count = sum(1 for _ in self._members())
            if not self.count:
                raise self._empty()

    def _members(self) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]:
        plain, last = ending_of(self._path) == ".tar", -1
        opened: IO[bytes] | gzip.GzipFile = (
            open(self._path, "rb") if plain else gzip.open(self._path)
        )
        reader: Any = _InPieces(opened)
        names = []
        with opened, tarfile.open(fileobj=reader, mode="r:", tarinfo=_Header) as archive:
            for member in archive:
                if member.offset <= last:  # a negative size sends tarfile back, for ever
                    raise tarfile.ReadError("its members go round in a circle")
                last = member.offset
                if (member.issym() or member.islnk()) and is_image(member.name):
                    raise InputError(
                        f"{self._label(member.name)}: is a link to {display(member.linkname)}: "
                        "pack the images themselves (tar --dereference --hard-dereference)."
                    )
                if member.isfile() and is_image(member.name):
                    names.append(member.name)
                    yield archive, member
                archive.members = []  # type: ignore[attr-defined]  # else it remembers every member that it has seen
            if not plain:  # the checksum stands at the end
                for _ in iter(partial(opened.read, _LARGEST_READ), b""):
                    pass
        self._names = names

    def items(self, start: int = 0) -> Iterator[Item]:
        with readable(self._path):
            for archive, member in islice(self._members(), start, None):
                yield self._item(archive, member)
        if not self._names:
            raise self._empty()

    def pick(self, numbers: Iterable[int]) -> Iterator[tuple[int, Item]]:
        """Yield the items of these `numbers` in one pass: each by itself would read all before."""
        wanted = set(numbers)
        with suppress(InputError), readable(self._path):
            for number, (archive, member) in enumerate(self._members()):
                if number in wanted:
                    yield number, self._item(archive, member)

    def _item(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> Item:
        self._check_size(member.name, member.size, self._path.stat().st_size)
        file = archive.extractfile(member)
        assert file is not None  # it is a regular file
        content = b"".join(iter(partial(file.read, _LARGEST_READ), b""))
        return Item(self._label(member.name), content)


class _Header(tarfile.TarInfo):
    """The header of a member; tarfile takes a damaged one for the end of the archive."""

    @classmethod
    def fromtarfile(cls, archive: tarfile.TarFile) -> Any:
        try:
            return super().fromtarfile(archive)
        except (tarfile.InvalidHeaderError, tarfile.TruncatedHeaderError) as error:  # type: ignore[attr-defined]
            raise tarfile.ReadError(str(error)) from error


class _InPieces:
    """A file for tarfile, which reads a name or a comment of any size that a header claims."""

    def __init__(self, file: IO[bytes] | gzip.GzipFile) -> None:
        self._file: Any = file
        self.tell, self.seek = file.tell, file.seek

    def read(self, size: int) -> Any:
        if size > _LARGEST_READ:
            raise tarfile.ReadError(f"a header announces {size} bytes")
        return self._file.read(size)
