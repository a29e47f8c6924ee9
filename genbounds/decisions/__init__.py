"""Decisions from scores: may a model replace another, how many samples does it take.

`gate` holds a candidate against a baseline with a margin; `plan` says how many samples an interval
of some width, or a difference of some size, needs. Both know their error (docs/decisions.md).
"""

from genbounds.decisions._gate import Margin as Margin
from genbounds.decisions._gate import Verdict as Verdict
from genbounds.decisions._gate import check_gate as check_gate
from genbounds.decisions._gate import decide as decide
from genbounds.decisions._gate import gate as gate
from genbounds.decisions._plan import Plan as Plan
from genbounds.decisions._plan import check_targets as check_targets
from genbounds.decisions._plan import plan as plan
from genbounds.decisions._plan import plan_from as plan_from
