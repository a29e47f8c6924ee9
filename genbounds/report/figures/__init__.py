"""Pictures of results. Every function is pure: results in, `Figure` out, equal for equal input."""

from genbounds.report.figures._comparisons import difference_matrix as difference_matrix
from genbounds.report.figures._comparisons import gap_plot as gap_plot
from genbounds.report.figures._convergence import convergence_plot as convergence_plot
from genbounds.report.figures._decisions import DECISION_TONES as DECISION_TONES
from genbounds.report.figures._decisions import gate_plot as gate_plot
from genbounds.report.figures._decisions import plan_plot as plan_plot
from genbounds.report.figures._decisions import reference_plot as reference_plot
from genbounds.report.figures._formula import formula as formula
from genbounds.report.figures._memorisation import ratio_plot as ratio_plot
from genbounds.report.figures._scores import rank_plot as rank_plot
from genbounds.report.figures._scores import score_plot as score_plot
from genbounds.report.figures._spending import samples_plot as samples_plot
from genbounds.report.figures._spending import spending_plot as spending_plot
from genbounds.report.figures._statements import VERDICT_TONES as VERDICT_TONES
from genbounds.report.figures._statements import CoveragePoint as CoveragePoint
from genbounds.report.figures._statements import claim_plot as claim_plot
from genbounds.report.figures._statements import coverage_plot as coverage_plot
from genbounds.report.figures._statements import miss_plot as miss_plot
from genbounds.report.figures._statements import tightness_plot as tightness_plot
from genbounds.report.figures._statements import verdict as verdict
from genbounds.report.figures._track import track_plot as track_plot
