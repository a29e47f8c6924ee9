"""Plug-in scores that follow a growing sample: a step costs its batch, not the whole sample."""

from genbounds.estimators.incremental._frechet import RunningFrechet as RunningFrechet
from genbounds.estimators.incremental._inception import RunningInception as RunningInception
from genbounds.estimators.incremental._pairs import RunningKid as RunningKid
from genbounds.estimators.incremental._pairs import RunningRke as RunningRke
from genbounds.estimators.incremental._running import Running as Running
