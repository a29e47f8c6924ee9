"""Files that claim to unpack to what no real data do."""

from __future__ import annotations

from genbounds.validation import InputError

# Real features shrink 1- to 20-fold. Whatever claims to unpack to more than `_BOMB_BYTES` from
# less than 1/`_BOMB_RATIO` of that is refused unread.
_BOMB_RATIO = 200
_BOMB_BYTES = 1 << 28


def check_bomb(
    shown: str,
    unpacked: int,
    packed: int,
    *,
    kind: str = "features",
    advice: str = "save it uncompressed as .npy",
) -> None:
    """Refuse what claims to unpack to far more bytes than `kind` ever do."""
    if unpacked > _BOMB_BYTES and unpacked > _BOMB_RATIO * packed:
        raise InputError(
            f"{shown}: claims to unpack {packed:,} bytes to {unpacked:,}, which no real {kind} "
            f"do: if it is genuine, {advice}."
        )
