"""Does a printed inequality hold? Its miss rate, and the repaired statement beside it."""

import genbounds as gb

catalog = gb.bounds.catalog()
arm = gb.simulate.GaussianArm(0.0, 4.0)
for name in ("o24.gaussian-mean", "repaired.gaussian-mean"):
    found = gb.simulate.coverage(catalog[name], arm, 10, 0.05, 10_000, 0)
    verdict = "refuted" if found.refuted else "upheld"
    print(f"{name}: misses {found.miss:.1%}, allowed 5 %: {verdict}")
