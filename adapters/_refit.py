"""Refit: the trees of a model, with leaf values that follow the objective on other data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.adapters._data import clone, read_part
from ltr_objectives.adapters._position_offsets import corrected
from ltr_objectives.adapters._ranker import Ranker
from ltr_objectives.adapters._run import read_run
from ltr_objectives.adapters._tables import categories, is_pool
from ltr_objectives.errors import LTRError, require, warn

R = TypeVar("R", bound=Ranker)


def refit(
    ranker: R, X: Any, y: ArrayLike, *, group: ArrayLike | None = None, qid: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None, propensity: ArrayLike | None = None, position: ArrayLike | None = None,
    labels: Mapping[str, ArrayLike] | None = None, decay_rate: float = 0.9,
) -> R:  # fmt: skip
    r"""Keep the trees of a ranker, and move the values of their leaves to other data.

    From the first tree to the last, the value :math:`v` of a leaf with the rows :math:`R` becomes

    .. math:: d\,v - (1 - d)\,\eta\,\frac{\sum_{i \in R} g_i}{\sum_{i \in R} h_i + \lambda},

    with gradients and Hessians at the scores of the new trees before it, ``decay_rate`` :math:`d`, the learning rate
    :math:`\eta` and the L2 :math:`\lambda` of the training. LightGBM's own ``refit`` does this for its own objectives.
    With a ``decay_rate`` of 0 it is XGBoost's ``process_type="update"`` with ``updater="refresh"``.

    Parameters
    ----------
    ranker : XGBRanker, LGBMRanker or CatBoostRanker
        A fitted ranker, which is not changed. Its parameters, and those of its objective, are used.
    X, y, group, qid, sample_weight, propensity, position, labels
        The other data, as in the ranker's ``fit``. Categories that the model does not know are missing values, with a
        warning that names them; CatBoost gives them the prior of its statistics.
    decay_rate : float
        From 0, new values only, to 1, no change. A leaf without rows is multiplied by it.

    Returns
    -------
    XGBRanker, LGBMRanker or CatBoostRanker
        A copy of ``ranker`` with the new values. It has no ``evals_result_`` and ``best_score_``.

    Notes
    -----
    Losses that start at the mean of the labels (:class:`ltr_objectives.RMSE`) start at the mean of the new ones. No
    initial scores are added. Statistics of categories in CatBoost stay those of the training.

    Raises
    ------
    LTRError
        For the library's own objectives, bags, and parameters whose leaves have other values than the formula's, such
        as ``linear_tree`` or monotone constraints.

    Examples
    --------
    >>> import numpy as np
    >>> from ltr_objectives.adapters import LGBMRanker, refit
    >>> rng = np.random.default_rng(0)
    >>> X, y, qid = rng.normal(size=(60, 3)), rng.integers(0, 3, 60), np.repeat([0, 1, 2], 20)
    >>> ranker = LGBMRanker(n_estimators=3, min_child_samples=5).fit(X, y, qid=qid)
    >>> refit(ranker, X, 2 - y, qid=qid).best_iteration_
    3
    """
    require(0 <= decay_rate <= 1, f"decay_rate must be from 0 to 1, got {decay_rate!r}")
    library, model = ranker.library, ranker.booster_
    require(ranker._fitted.chained, "bags are no chain of trees; refit the ranker of each bag, or train bags anew")
    require(not is_pool(X), "give refit the table of the Pool, with qid=")
    part = read_part(X, y, group=group, qid=qid, weight=sample_weight, labels=labels, propensity=propensity,
                     position=position)  # fmt: skip
    _warn_of_new(part.X, library.categories(model, part.X))
    part = part._replace(X=ranker._as_trained(part.X))
    given = {name: value for name, value in ranker._asked().items() if name not in ("early_stopping_rounds", "bounds")}
    if ranker._fitted.objective_ is not None:
        given["objective"] = ranker._fitted.objective_
    run = corrected(read_run(given, library, part), library)
    params = run.with_l2(library)
    gradients = run.gradients(library, dict(run.params))
    if gradients is None:
        raise LTRError(f"objective={run.objective!r} is {library.name}'s own, whose leaves refit cannot compute")
    for name, usual in library.usual_leaves.items():
        for each, value in library.given(name, params).items():
            require(value in usual, f"{each}={value!r} gives leaves other values than refit does; train anew")
    l1, l2 = (
        float(next(iter(library.given(name, params).values()), usual))
        for name, usual in (("reg_alpha", 0.0), (library.l2, library.l2_default))
    )
    if library.l2_by_weight and part.weight is not None:
        l2 *= float(part.weight.mean())
    values, rows, rates, base = library.leaves(model, part.X, params)
    scores = np.full(len(part.labels), base)
    shift = 0.0 if run.train.offset is None else run.train.offset
    for i, rate in enumerate(rates):
        start = 0.0 if i or run.start is None else run.start - base  # which the leaves of the first tree bring
        g, h = (np.bincount(rows[:, i], each, len(values[i])) for each in gradients.answer(scores + start + shift))
        step = start - rate * np.sign(g) * np.maximum(np.abs(g) - l1, 0) / (h + l2 + 1e-15)
        values[i] = decay_rate * values[i] + (1 - decay_rate) * step
        scores += values[i][rows[:, i]]
    moved = clone(ranker)
    moved._adopt(library.with_leaves(model, values))
    moved._fitted = ranker._fitted._replace(objective_=run.objective, evals_result_=None, best_score_=None)
    return moved


def _warn_of_new(X: Any, known: Mapping[Any, Any]) -> None:
    """Warn of categories that the model does not know, by column."""
    for column in categories(X).keys() & known.keys():
        values = X[column]
        new = values[values.notna() & ~values.isin(known[column])]
        if len(new):
            found = new.unique().tolist()
            warn(
                f"X: {len(new)} rows have {len(found)} categories that the model does not know in {column!r}, such as "
                f"{found[:3]}; they count as missing"
            )
