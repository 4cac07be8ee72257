"""Bags: models trained on resampled queries, merged into one model of the library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.adapters._data import clone
from ltr_objectives.adapters._names import AUTO, DEFAULT, chosen_objective, read_param
from ltr_objectives.adapters._position_offsets import corrected
from ltr_objectives.adapters._ranker import Ranker
from ltr_objectives.adapters._run import read_run
from ltr_objectives.adapters._tables import Part, is_pool
from ltr_objectives.checks import check_integer
from ltr_objectives.errors import require

R = TypeVar("R", bound=Ranker)
OF_ONE_TRAINING = "eval_names", "init_model", "early_stopping_rounds", "callbacks"


def bagged(
    ranker: R, X: Any, y: ArrayLike, *, group: ArrayLike | None = None, qid: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None, propensity: ArrayLike | None = None, position: ArrayLike | None = None,
    labels: Mapping[str, ArrayLike] | None = None, bags: int = 8, **own: Any,
) -> R:  # fmt: skip
    """Train a model on each of several bags of queries, and merge them into one whose raw scores are their mean.

    A bag draws as many queries as there are, with replacement. Its model is evaluated on the queries that were not
    drawn, and stops early on them if the ranker has ``early_stopping_rounds`` (Ganjisaffar, Caruana and Lopes, "Bagging
    Gradient-Boosted Trees for High Precision, Low Variance Ranking Models", SIGIR 2011).

    Parameters
    ----------
    ranker : XGBRanker, LGBMRanker or CatBoostRanker
        Its parameters are used; it is not fitted itself. Bag ``i`` trains with the ranker's seed plus ``i``.
    X, y, group, qid, sample_weight, propensity, position, labels
        As in the ranker's ``fit``.
    bags : int
        Number of models.
    **own
        Further arguments of the ranker's ``fit`` that are not about eval sets or another model, such as ``init_score``,
        ``base_margin`` or ``baseline``.

    Returns
    -------
    XGBRanker, LGBMRanker or CatBoostRanker
        A fitted clone of ``ranker``. Its ``booster_`` has the trees of all bags, with leaf values divided by their
        number, and ``best_iteration_`` is the sum of their rounds. It has no ``evals_result_`` and ``best_score_``.

    Raises
    ------
    LTRError
        For ``objective="auto"``, ``bounds``, a ``catboost.Pool``, data with one query, and settings whose models cannot
        be merged.

    See Also
    --------
    tradeoff : Trainings with several bounds or weights.

    Examples
    --------
    >>> import numpy as np
    >>> from ltr_objectives.adapters import LGBMRanker, bagged
    >>> rng = np.random.default_rng(0)
    >>> X, y, qid = rng.normal(size=(60, 3)), rng.integers(0, 3, 60), np.repeat([0, 1, 2], 20)
    >>> bagged(LGBMRanker(n_estimators=3, min_child_samples=5), X, y, qid=qid, bags=4).best_iteration_
    12
    """
    given = ranker._asked()
    require(given.get("objective") != AUTO, 'objective="auto" may choose other objectives for other bags; name one')
    require(
        "bounds" not in given, "bags stop on different queries, and a bound is kept on one eval set; leave bounds= out"
    )
    require(not is_pool(X), "bags are drawn from a table; give bagged the table of the Pool, with qid=")
    data = {"group": group, "qid": qid, "sample_weight": sample_weight, "labels": labels}
    part, evals, params = ranker._read_fit(X, y, **data, propensity=propensity, position=position, **own)
    wrong = ["eval_set"] if evals else [name for name in OF_ONE_TRAINING if params.get(name) is not None]
    require(not wrong, f"each bag is evaluated on what it leaves out, and starts anew; leave {''.join(wrong[:1])}= out")
    asked = ranker._asked(params)
    if asked.get("objective") is None:  # one for all bags, by the labels of all data
        params["objective"] = chosen_objective(asked, ranker.library, part.queries)
        params |= {} if "eval_metric" in asked else {"eval_metric": DEFAULT}
    # one estimate of positions for all bags, which each stop by the queries that they leave out
    asked.pop("early_stopping_rounds", None)
    run = corrected(read_run(asked, ranker.library, part), ranker.library)
    part = part._replace(position=None, offset=run.train.offset)
    weight = part.queries.weight_by_query
    if weight is not None and weight.any():  # else a bag, or what it leaves out, may have no weight at all
        part = part.take(np.flatnonzero(np.repeat(weight > 0, part.group)), part.group[weight > 0])
    require(len(part.queries) > 1, "bags are drawn from the queries with a weight, and the data has only one")
    name = next(iter(ranker.library.given("random_state", given)), "random_state")
    seed = read_param(given.get(name, 0))
    rng = np.random.default_rng(seed)
    fitted = []
    for bag in range(check_integer("bags", bags)):
        drawn, left_out = resampled(part, rng)
        fitted.append(clone(ranker).set_params(**{name: seed + bag})._fit_parts(drawn, (left_out,), **params))
    merged = clone(ranker)
    merged._adopt(ranker.library.merge([each.booster_ for each in fitted]))
    merged._fitted = fitted[0]._fitted._replace(
        evals_result_=None, best_score_=None, chained=False, position_offsets_=run.offsets
    )
    return merged


def resampled(part: Part, rng: np.random.Generator) -> tuple[Part, Part]:
    """Draw as many queries as there are, weighted by how often; return them, and those that were not drawn.

    Both have a query whose labels differ, if two queries have.
    """
    n, labels, start = len(part.queries), part.queries.labels, part.queries.ptr[:-1]
    differ = np.maximum.reduceat(labels, start) > np.minimum.reduceat(labels, start)
    needed = differ if differ.sum() > 1 else np.ones(n, bool)
    times = np.ones(n, np.int64)
    while not (needed & (times == 0)).any() or not (needed & (times > 0)).any():
        times = np.bincount(rng.integers(n, size=n), minlength=n)
    by_row, weight = np.repeat(times, part.group), part.queries.weight_by_row
    drawn = np.flatnonzero(by_row), part.group[times > 0], by_row if weight is None else by_row * weight
    return part.take(*drawn), part.take(np.flatnonzero(by_row == 0), part.group[times == 0])
