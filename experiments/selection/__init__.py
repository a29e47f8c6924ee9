"""Online selection measured: error rates, samples to a certificate, choice of the boundary."""
