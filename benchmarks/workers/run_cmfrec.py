"""cmfrec's CMF, set up to minimise the very same objective.

Without biases and centring it minimises ½ Σ (x − a·b)² + ½ λ (‖A‖² + ‖B‖²), whose least value
is ours once `k` is at least the rank of the optimum. It has no hook inside its iteration, so a
request names the number of iterations, and the whole call is timed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from cmfrec import CMF
from common import Clock, load, objective, serve
from scipy.sparse import coo_array


def answer(request: dict[str, Any]) -> dict[str, Any]:
    problem = load(request["problem"])
    precision = np.float32 if request["settings"].get("use_float") else np.float64
    cells = problem.rows.astype(np.int32), problem.cols.astype(np.int32)
    seen = coo_array((problem.values.astype(precision), cells), shape=problem.shape)
    model = CMF(
        k=request["k"],
        lambda_=problem.penalty,
        niter=request["niter"],
        random_state=request["seed"],
        nthreads=request.get("threads", 1),
        method="als",
        user_bias=False,
        item_bias=False,
        center=False,
        scale_lam=False,
        precompute_for_predictions=False,
        produce_dicts=False,
        verbose=False,
        **request["settings"],
    )
    clock = Clock()
    model.fit(seen)
    reading = clock.read()
    reached = objective(problem, model.A_, model.B_)
    half = 0.5 * problem.penalty * float((model.A_**2).sum() + (model.B_**2).sum())
    return {"trajectory": [[*reading, reached]], "penalty_term": half}


if __name__ == "__main__":
    serve(answer)
