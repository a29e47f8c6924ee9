"""Which of three models is best? A ranking, and its report page."""

import numpy as np

import genbounds as gb
from genbounds import report

rng = np.random.default_rng(0)
real = rng.normal(size=(2000, 16))
models = {f"temperature {t}": t * rng.normal(size=(1000, 16)) for t in (0.9, 1.0, 1.05)}

ranking = gb.compare(models, real)
print(ranking)
print("may still be the best:", *ranking.contenders, sep="\n  ")

# Would more samples change the picture? The same at a half, a quarter, ... of every sample.
parts = gb.estimators.convergence(models, real)
page = report.score_page(
    ranking.scores, metric="fd", level=0.95, ranking=ranking, convergence=parts
)
report.write_page("report.html", page)
