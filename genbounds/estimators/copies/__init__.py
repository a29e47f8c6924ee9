"""Scores of generated rows against the very rows that a model was trained on."""

from genbounds.estimators.copies._authpct import AUTHPCT as AUTHPCT
from genbounds.estimators.copies._mifid import MIFID as MIFID
from genbounds.estimators.copies._mifid import cosine_distances as cosine_distances
