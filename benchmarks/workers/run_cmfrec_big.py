"""cmfrec's CMF on answers in a folder: read, fitted with its own iterations, asked for some cells.

One request on standard input (JSON): folder, shape, k, threads, test (an `.npz` of cells), and
`settings` for CMF beyond its defaults. The answer tells wall-clock and processor seconds of reading
and of fitting; what the model says of the cells goes to `out`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from cmfrec import CMF
from common import Clock, serve
from scipy.sparse import coo_array


def answer(request: dict[str, Any]) -> dict[str, Any]:
    clock = Clock()
    folder = Path(request["folder"])
    rows, cols, values = (np.load(folder / f"{name}.npy") for name in ("rows", "cols", "values"))
    if request["settings"].get("use_float", True):
        values = values.astype(np.float32)
    seen = coo_array((values, (rows, cols)), shape=tuple(request["shape"]))
    read = clock.read()
    model = CMF(
        k=request["k"],
        random_state=1,
        nthreads=request["threads"],
        verbose=True,
        produce_dicts=False,
        **request["settings"],
    )
    clock = Clock()
    model.fit(seen)
    fitted = clock.read()
    with np.load(request["test"]) as test:
        told = model.predict(user=test["rows"], item=test["cols"])
    np.save(request["out"], told)
    return {"read": read, "fitted": fitted, "lambda": model.lambda_, "niter": model.niter}


if __name__ == "__main__":
    serve(answer)
