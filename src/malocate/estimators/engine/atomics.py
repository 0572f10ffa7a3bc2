"""Numbers that several threads read and write at once, for kernels: all see one order of events."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic

from malocate.estimators.engine.tiles import widened

ORDER = "seq_cst"
BYTES = 8


def _read(_: Any, array: Any, place: Any) -> Any:
    """Read array[place] anew, once all that went before is done."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        builder.fence(ORDER)
        return builder.load_atomic(_at(context, builder, signature, values), ORDER, BYTES)

    return types.int64(array, place), generate


def _write(_: Any, array: Any, place: Any, value: Any) -> Any:
    """Put a value to array[place]."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        at = _at(context, builder, signature, values)
        builder.store_atomic(widened(builder, values[2]), at, ORDER, BYTES)
        return context.get_dummy_value()

    return types.void(array, place, value), generate


def _add(_: Any, array: Any, place: Any, value: Any) -> Any:
    """Add to array[place], and give what it held before."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        at = _at(context, builder, signature, values)
        return builder.atomic_rmw("add", at, widened(builder, values[2]), ORDER)

    return types.int64(array, place, value), generate


def _swap(_: Any, array: Any, place: Any, old: Any, new: Any) -> Any:
    """Put `new` to array[place] if it holds `old`, and tell whether it did."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        at = _at(context, builder, signature, values)
        expected, wanted = (widened(builder, value) for value in values[2:])
        done = builder.cmpxchg(at, expected, wanted, ORDER, ORDER)
        return builder.extract_value(done, 1)

    return types.boolean(array, place, old, new), generate


def _at(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    """Where array[place] is, in an array of 64-bit integers."""
    made = context.make_array(signature.args[0])(context, builder, values[0])
    return builder.gep(made.data, [widened(builder, values[1])])


read: Any = intrinsic(_read)
write: Any = intrinsic(_write)
add: Any = intrinsic(_add)
swap: Any = intrinsic(_swap)
