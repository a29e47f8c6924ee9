"""Scores of generated rows against the very rows that a model was trained on."""

from genbounds.estimators.copies._authpct import AUTHPCT as AUTHPCT
from genbounds.estimators.copies._authpct import TrainingRows as TrainingRows
from genbounds.estimators.copies._authpct import authpct as authpct
from genbounds.estimators.copies._cosine import cosine_distances as cosine_distances
from genbounds.estimators.copies._mifid import MIFID as MIFID
from genbounds.estimators.copies._mifid import MifidReference as MifidReference
from genbounds.estimators.copies._mifid import mifid as mifid
