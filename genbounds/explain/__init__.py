"""What a score does not tell: kinds of rows missed or invented, copies of training rows."""

from genbounds.explain._exact import Excess as Excess
from genbounds.explain._exact import Suspect as Suspect
from genbounds.explain._memorisation import Memorisation as Memorisation
from genbounds.explain._memorisation import memorisation as memorisation
from genbounds.explain._modes import KINDS as KINDS
from genbounds.explain._modes import Modes as Modes
from genbounds.explain._modes import Region as Region
from genbounds.explain._modes import modes as modes
