"""Every concentration inequality as an object: claim, assumptions, source, constants, width."""

from genbounds.bounds._bound import Assumption as Assumption
from genbounds.bounds._bound import Bound as Bound
from genbounds.bounds._bound import Facts as Facts
from genbounds.bounds._bound import Quantity as Quantity
from genbounds.bounds._catalog import catalog as catalog
from genbounds.bounds._exact import ExactSides as ExactSides
from genbounds.bounds._exact import exact_sides as exact_sides
from genbounds.bounds._inequalities import clip as clip
from genbounds.bounds._inequalities import entropy_sum as entropy_sum
from genbounds.bounds._inequalities import truncate as truncate
from genbounds.bounds._tails import normal_product_tail as normal_product_tail
from genbounds.bounds._tails import weighted_chi_square_quantile as weighted_chi_square_quantile
from genbounds.bounds._tails import weighted_chi_square_tail as weighted_chi_square_tail
