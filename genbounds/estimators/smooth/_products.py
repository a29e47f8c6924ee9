"""Products of a kernel matrix with weights, without the matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

Kernel = Callable[..., Any]
"""From rows (k, d) and (m, d) to the matrix (k, m)."""

BLOCK_ENTRIES = 1 << 20
"""Of the kernel matrix, that are held at once: 8 MB."""


def kernel_product(kernel: Kernel, x: Tensor, y: Tensor, v: Tensor) -> Tensor:
    """Multiply the matrix of a kernel with weights, in blocks that are never held together.

    For a `SmoothScore` of many rows: of 50,000 rows the matrix alone takes 20 GB.

    Parameters
    ----------
    kernel : callable
        From rows (k, d) and (m, d) to a tensor (k, m).
    x : tensor of shape (n, d)
    y : tensor of shape (m, d)
    v : tensor of shape (m,)

    Returns
    -------
    tensor of shape (n,)
        Differentiable in `v` any number of times; not in the rows.

    Examples
    --------
    >>> import torch
    >>> from genbounds.estimators import kernel_product
    >>> x, w = torch.randn(500, 3), torch.full((500,), 1 / 500)
    >>> product = kernel_product(lambda a, b: a @ b.T, x, x, w)
    >>> torch.allclose(product, (x @ x.T) @ w, atol=1e-5)
    True
    """
    out: Tensor = _function().apply(v, kernel, x, y, False)
    return out


def _function() -> Any:
    """Return the product as a differentiable function; torch is imported here."""
    import torch

    class Product(torch.autograd.Function):  # type: ignore[misc]
        """K v, or K' v if transposed; the derivative of one is the other."""

        @staticmethod
        def forward(
            ctx: Any, v: Tensor, kernel: Kernel, x: Tensor, y: Tensor, transposed: bool
        ) -> Tensor:
            ctx.rest = (kernel, x, y, not transposed)
            out = v.new_zeros(len(y) if transposed else len(x))
            step = max(1, BLOCK_ENTRIES // len(y))
            for start in range(0, len(x), step):
                part = slice(start, start + step)
                block = kernel(x[part], y)
                if transposed:
                    out += block.T @ v[part]
                else:
                    out[part] = block @ v
            return out

        @staticmethod
        def backward(ctx: Any, *given: Any) -> Any:
            return Product.apply(given[0], *ctx.rest), None, None, None, None

    return Product
