"""Why a model scores as it does: which kinds of rows it misses or invents."""

from genbounds.explain._modes import KINDS as KINDS
from genbounds.explain._modes import Modes as Modes
from genbounds.explain._modes import Region as Region
from genbounds.explain._modes import modes as modes
