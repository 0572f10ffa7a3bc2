"""Vectors of one cache line for kernels: loads, stores, multiply-adds and sums, spelled out.

Lines of a sparse matrix are short. Loops that the compiler makes into vectors spend most of a
short line on checks before and odd ends after; here a vector is a value of its own, kept in
registers from one rank to the next. Whatever is loaded must be filled up to whole vectors.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core.cgutils import get_or_insert_function
from numba.extending import intrinsic, models, register_model

from malocate.estimators.engine.tiles import TILE, load_at, store_at, turned, widened

CACHE_LINE = 64
"""Bytes."""


class Vector(types.Type):
    """Numba's type for a cache line of numbers."""

    def __init__(self, dtype: Any) -> None:
        """Take the type of one number."""
        self.dtype, self.lanes = dtype, CACHE_LINE * 8 // dtype.bitwidth
        super().__init__(name=f"Vector({dtype})")


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Vector) -> None:
        element = manager.lookup(kind.dtype).get_value_type()
        super().__init__(manager, kind, ir.VectorType(element, kind.lanes))  # type: ignore[no-untyped-call]


def _zeros(_: Any, array: Any) -> Any:
    """A vector of zeros, of the type of the array."""
    vector = Vector(array.dtype)

    def generate(context: Any, _builder: Any, _signature: Any, _values: Any) -> Any:
        return ir.Constant(context.get_value_type(vector), None)

    return vector(array), generate


def _lanes(_: Any, array: Any) -> Any:
    """How many numbers of the array make a vector: known to the compiler, unlike `itemsize`."""

    def generate(_context: Any, _builder: Any, _signature: Any, _values: Any) -> Any:
        return ir.IntType(64)(Vector(array.dtype).lanes)

    return types.int64(array), generate


def _load(_: Any, array: Any, row: Any, place: Any) -> Any:
    """The vector at a place of a row, counted in vectors."""
    vector = Vector(array.dtype)

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        at = _address(context, builder, signature.args[0], values, vector.lanes)
        return load_at(context, builder, at, vector.lanes)

    return vector(array, row, place), generate


def _store(_: Any, array: Any, row: Any, place: Any, vector: Any) -> Any:
    """Put a vector to a place of a row, counted in vectors."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        at = _address(context, builder, signature.args[0], values, vector.lanes)
        store_at(context, builder, values[3], at)
        return context.get_dummy_value()

    return types.void(array, row, place, vector), generate


def _load_from(_: Any, array: Any, row: Any, column: Any) -> Any:
    """The vector that begins at a column of a row, counted in numbers."""
    vector = Vector(array.dtype)

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return load_at(
            context, builder, _address(context, builder, signature.args[0], values), vector.lanes
        )

    return vector(array, row, column), generate


def _store_from(_: Any, array: Any, row: Any, column: Any, vector: Any) -> Any:
    """Put a vector to where it begins at a column of a row, counted in numbers."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        at = _address(context, builder, signature.args[0], values)
        store_at(context, builder, values[3], at)
        return context.get_dummy_value()

    return types.void(array, row, column, vector), generate


def _plus(_: Any, onto: Any, first: Any, second: Any) -> Any:
    """Give onto + first · second, rounded once where the processor can; `first` may be a number.

    One instruction from the start: a product and a sum might be joined in some callers only.
    """
    name = f"llvm.fmuladd.v{onto.lanes}f{onto.dtype.bitwidth}"

    def generate(context: Any, builder: Any, _: Any, values: Any) -> Any:
        factor = values[1]
        if not isinstance(first, Vector):
            factor = context.cast(builder, factor, first, onto.dtype)
            factor = _repeated(builder, factor, onto.lanes)
        kind = values[0].type
        signature = ir.FunctionType(kind, [kind] * 3)
        fused = get_or_insert_function(builder.module, signature, name)  # type: ignore[no-untyped-call]
        return builder.call(fused, (factor, values[2], values[0]))

    return onto(onto, first, second), generate


def _times(_: Any, first: Any, second: Any) -> Any:
    """The product, lane by lane."""

    def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return builder.fmul(*values)

    return first(first, second), generate


def _total(_: Any, vector: Any) -> Any:
    """The sum of the lanes."""

    def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return builder.extract_element(_folded(builder, values[0], 1), ir.IntType(32)(0))

    return vector.dtype(vector), generate


def _store_totals(_: Any, array: Any, row: Any, place: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """Put the sums of the lanes of four vectors to a place of a row, counted in fours."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        at = _address(context, builder, signature.args[0], values, TILE)
        sums = turned(builder, [_folded(builder, vector, TILE) for vector in values[3:]])
        both = builder.fadd(sums[0], sums[1]), builder.fadd(sums[2], sums[3])
        store_at(context, builder, builder.fadd(*both), at)
        return context.get_dummy_value()

    return types.void(array, row, place, a, b, c, d), generate


lanes: Any = intrinsic(_lanes)
zeros: Any = intrinsic(_zeros)
load: Any = intrinsic(_load)
store: Any = intrinsic(_store)
load_from: Any = intrinsic(_load_from)
store_from: Any = intrinsic(_store_from)
plus: Any = intrinsic(_plus)
times: Any = intrinsic(_times)
total: Any = intrinsic(_total)
store_totals: Any = intrinsic(_store_totals)


def _address(context: Any, builder: Any, kind: Any, values: Any, lanes: int = 1) -> Any:
    """Where array[row, place · lanes] is; the array must be in C order."""
    made = context.make_array(kind)(context, builder, values[0])
    row, place = (widened(builder, value) for value in values[1:3])
    column = builder.mul(place, ir.IntType(64)(lanes))
    width = builder.extract_value(made.shape, 1)
    return builder.gep(made.data, [builder.add(builder.mul(row, width), column)])


def _repeated(builder: Any, value: Any, lanes: int) -> Any:
    one = ir.Constant(ir.VectorType(value.type, lanes), ir.Undefined)
    one = builder.insert_element(one, value, ir.IntType(32)(0))
    mask = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)
    return builder.shuffle_vector(one, one, mask)


def _folded(builder: Any, vector: Any, lanes: int) -> Any:
    """Add the upper half to the lower until so many lanes are left."""
    while (count := vector.type.count) > lanes:
        halves = (
            builder.shuffle_vector(
                vector, vector, ir.Constant(ir.VectorType(ir.IntType(32), count // 2), half)
            )
            for half in (list(range(count // 2)), list(range(count // 2, count)))
        )
        vector = builder.fadd(*halves)
    return vector
