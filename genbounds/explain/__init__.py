"""What a score does not tell: does the generator copy its training data (docs/memorisation.md)."""

from genbounds.explain._memorisation import memorisation as memorisation
from genbounds.explain._result import Memorisation as Memorisation
from genbounds.explain._tests import Excess as Excess
from genbounds.explain._tests import Suspect as Suspect
