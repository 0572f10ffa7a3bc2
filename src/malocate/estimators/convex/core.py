"""A small matrix between two bases, on which the nuclear norm is cheap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Core:
    """The matrix with its singular value decomposition."""

    matrix: Floats
    left: Floats
    values: Floats
    right: Floats

    @classmethod
    def diagonal(cls, values: Floats, size: int) -> Core:
        """Begin with these singular values, and zeros behind them."""
        filled = np.append(values, np.zeros(size - len(values)))
        return cls(np.diag(filled), np.eye(size), filled, np.eye(size))

    @classmethod
    def shrunken(cls, matrix: Floats, by: float) -> Core:
        """Take so much off every singular value, down to zero.

        >>> Core.shrunken(np.diag([3.0, 1.0]), by=2.0).matrix.tolist()
        [[1.0, 0.0], [0.0, 0.0]]
        """
        left, values, right = np.linalg.svd(matrix)
        values = np.maximum(values - by, 0.0)
        return cls((left * values) @ right, left, values, right.T)
