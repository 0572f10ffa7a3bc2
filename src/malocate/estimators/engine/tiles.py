"""Gathering rows of a factor into columns of a block, by tiles of four by four.

Written as plain loops this turning over moves one number at a time, and costs as much as all
the arithmetic on the block; as four vector loads, eight shuffles and four vector stores it costs
a fraction. Numba writes no shuffles by itself, so they are spelled out here.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

TILE = 4


def _tile(  # numba wants exactly these arguments, the types that it has found
    _: Any, other: Any, a: Any, b: Any, c: Any, d: Any, k: Any, block: Any, j: Any
) -> Any:
    """block[k : k + 4, j : j + 4] = other[[a, b, c, d], k : k + 4].T; both in C order."""
    if (other.layout, block.layout, other.dtype) != ("C", "C", block.dtype):
        return None  # which numba refuses to compile

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        def place(argument: int, row: Any, column: Any) -> Any:
            made = context.make_array(signature.args[argument])(context, builder, values[argument])
            width = builder.extract_value(made.shape, 1)
            shift = builder.add(builder.mul(row, width), column)
            return builder.gep(made.data, [shift]), width

        wide = [widened(builder, value) for value in values[1:6]] + [widened(builder, values[7])]
        rows, column, cell = wide[:4], wide[4], wide[5]
        loaded = [load_at(context, builder, place(0, row, column)[0], TILE) for row in rows]
        at, stride = place(6, column, cell)
        for vector in turned(builder, loaded):
            store_at(context, builder, vector, at)
            at = builder.gep(at, [stride])
        return context.get_dummy_value()

    return types.void(other, a, b, c, d, k, block, j), generate


_turn_tile: Any = intrinsic(_tile)


def widened(builder: Any, value: Any) -> Any:
    """Indices may be 32-bit: they are never negative, so extending the sign is harmless."""
    long = ir.IntType(64)
    return value if value.type == long else builder.sext(value, long)


def load_at(context: Any, builder: Any, at: Any, lanes: int) -> Any:
    """Load so many numbers in a row, which need not be aligned."""
    element = at.type.pointee
    loaded = builder.load(builder.bitcast(at, ir.VectorType(element, lanes).as_pointer()))
    loaded.align = context.get_abi_sizeof(element)
    return loaded


def store_at(context: Any, builder: Any, vector: Any, at: Any) -> None:
    """Store a vector in a row, which need not be aligned."""
    stored = builder.store(vector, builder.bitcast(at, vector.type.as_pointer()))
    stored.align = context.get_abi_sizeof(at.type.pointee)


def turned(builder: Any, rows: list[Any]) -> list[Any]:
    """The columns of a tile of four rows, by interleaving twice."""

    def mixed(first: Any, second: Any, lanes: list[int]) -> Any:
        mask = ir.Constant(ir.VectorType(ir.IntType(32), TILE), lanes)
        return builder.shuffle_vector(first, second, mask)

    low, high = [0, 4, 1, 5], [2, 6, 3, 7]
    front, back = [0, 1, 4, 5], [2, 3, 6, 7]
    halves = [
        (mixed(rows[0], rows[1], half), mixed(rows[2], rows[3], half)) for half in (low, high)
    ]
    return [mixed(*pair, half) for pair in halves for half in (front, back)]


@njit(cache=True, nogil=True, forceinline=True)
def gather(other: Any, index: Any, block: Any, n: int) -> None:
    """block[k, j] = other[index[j], k] for j below n, which must be a multiple of four."""
    rank = other.shape[1]
    for j in range(0, n, TILE):
        a, b, c, d = index[j], index[j + 1], index[j + 2], index[j + 3]
        if rank < TILE:
            for k in range(rank):
                block[k, j], block[k, j + 1] = other[a, k], other[b, k]
                block[k, j + 2], block[k, j + 3] = other[c, k], other[d, k]
            continue
        for k in range(0, rank - TILE + 1, TILE):
            _turn_tile(other, a, b, c, d, k, block, j)
        if rank % TILE:  # the last tile overlaps the one before
            _turn_tile(other, a, b, c, d, rank - TILE, block, j)
