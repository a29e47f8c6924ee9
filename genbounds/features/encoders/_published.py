"""Files of weights by their publishers: address, size and SHA-256, each with its source."""

from __future__ import annotations

from genbounds.features.encoders._weights import Weights

# The name holds the first eight digits, as torch.hub checks them. torch-fidelity publishes the
# same file under another name.
INCEPTION = Weights(
    names=("pt_inception-2015-12-05-6726825d.pth", "weights-inception-2015-12-05-6726825d.pth"),
    url="https://github.com/mseitzer/pytorch-fid/releases/download/fid_weights/pt_inception-2015-12-05-6726825d.pth",
    sha256="6726825d",
    size=95_628_359,
)

# SHA-256: github.com/crowsonkb/k-diffusion, k_diffusion/evaluation.py at 0f9902fc.
INCEPTION_SCRIPT = Weights(
    names=("inception-2015-12-05.pt",),
    url="https://nvlabs-fi-cdn.nvidia.com/stylegan2-ada-pytorch/pretrained/metrics/inception-2015-12-05.pt",
    sha256="f58cb9b6ec323ed63459aa4fb441fe750cfe39fafad6da5cb504a16f19e958f4",
    size=95_607_719,
)
