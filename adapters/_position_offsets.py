"""Offsets of positions, from a regression of the positions on the features by the library's own trees."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.adapters._data import read_part
from ltr_objectives.adapters._names import AnyObjective
from ltr_objectives.adapters._run import Run, read_run
from ltr_objectives.adapters._tables import is_pool
from ltr_objectives.checks import check_choice
from ltr_objectives.errors import LTRError, require, warn
from ltr_objectives.libraries import LIBRARIES, Library
from ltr_objectives.metrics.linear import NDCG
from ltr_objectives.objectives.around import innermost
from ltr_objectives.objectives.base import Objective
from ltr_objectives.objectives.clicks import warn_of_labels
from ltr_objectives.objectives.composite import leaves
from ltr_objectives.objectives.listmle import ListMLE
from ltr_objectives.objectives.listnet import ListNet
from ltr_objectives.objectives.queryrmse import QueryRMSE
from ltr_objectives.objectives.xendcg import XENDCG
from ltr_objectives.position_bias import NEARLY_RIGHT, PositionOffsets, centred, estimate, log_chances, ranks_of
from ltr_objectives.queries import Queries

TREES = {"n_estimators": 60, "learning_rate": 0.15}
FIT_LABELS = (  # of the libraries
    "regression", "regression_l1", "regression_l2", "l1", "l2", "l2_root", "mae", "mse", "rmse", "mean_absolute_error",
    "mean_squared_error", "root_mean_squared_error", "huber", "fair", "quantile", "rank_xendcg", "xendcg",
    "reg:squarederror", "reg:absoluteerror", "reg:pseudohubererror", "RMSE", "MAE", "QueryRMSE",
)  # fmt: skip
CLICKS = {"n_estimators": 30, "learning_rate": 0.1}


def position_offsets(
    X: Any, clicks: ArrayLike, position: ArrayLike, *, group: ArrayLike | None = None, qid: ArrayLike | None = None,
    library: str | None = None, n_threads: int | None = None,
) -> PositionOffsets:  # fmt: skip
    """Estimate how much the position where a document was shown changes its clicks.

    A regression by trees says where the features would put each document; it is trained on one half of the queries for
    the other. Given this, positions are as good as random, and the clicks show their bias:
    ``ltr_objectives.position_bias.estimate`` has the formula. ``fit(position=)`` of the estimators calls this. Call
    it to see the estimate, for a training by the library's own functions, or with an objective of its own.

    Parameters
    ----------
    X : array, DataFrame or sparse matrix of shape (rows, features)
        As in the estimators' ``fit``, without the position.
    clicks : array of shape (rows,)
        1 for a click, else 0.
    position : array of shape (rows,)
        Where each document was shown: whole numbers that count from 0 or from 1.
    group : array of shape (queries,), optional
        Sizes of the queries, at least two. Give this or ``qid``.
    qid : array of shape (rows,), optional
        Query id of each row.
    library : "xgboost", "lightgbm" or "catboost", optional
        Whose trees are used; by default those of the first that is installed.
    n_threads : int, optional
        By default all processors.

    Returns
    -------
    PositionOffsets
        ``at(position)`` are scores that a training starts from, and without which the model predicts. ``advice`` says
        why a correction would not help. :class:`PropensityDisplay` draws it.

    Raises
    ------
    LTRError
        For positions that are no whole numbers from 0, and if there is only one query.

    Examples
    --------
    >>> import numpy as np
    >>> from ltr_objectives.datasets import make_ranking
    >>> X, y, group, _ = make_ranking(2000, mean_length=10, features=10)
    >>> rng = np.random.default_rng(0)
    >>> position = np.concatenate([rng.permutation(n) for n in group])
    >>> clicks = rng.random(len(y)) < (0.1 + 0.2 * y) / (1 + position)
    >>> found = position_offsets(X, clicks, position, group=group)
    >>> round(found.eta, 1), found.advice
    (0.9, '')
    """
    require(not is_pool(X), "give position_offsets the table of the Pool, with qid=")
    names = [name for name in LIBRARIES if find_spec(name)] if library is None else [library]
    require(names, "position_offsets needs the trees of XGBoost, LightGBM or CatBoost; install one of them")
    chosen = LIBRARIES[check_choice("library", names[0], tuple(LIBRARIES))]
    part = read_part(X, np.asarray(clicks, np.float32), group=group, qid=qid, position=position)
    threads = {} if n_threads is None else {chosen.threads: n_threads}
    return estimated(read_run(threads, chosen, part), chosen)


def estimated(run: Run, library: Library) -> PositionOffsets:
    """Return the offsets of the positions in the training data of a run."""
    part = run.train
    if part.position is None:
        raise LTRError("position= is missing")
    require(len(part.queries) > 1, "position= compares two halves of the queries, but there is one query")
    equal = {**library.reproducible(), **library.given(library.threads, run.params)}
    alone = run._replace(evals=(), names=[], patience=0, callbacks=[], verbose=False, init_model=None)
    y = centred(-np.log1p(ranks_of(part.position)[0]), part.queries)
    spread, expected = float(y @ y), y
    if spread:
        params = library.shaped(15, 1.0, 20.0) | TREES | equal
        regression = alone._replace(objective=library.regression, metrics=(), params=params)
        expected = centred(_out_of_fold(regression, library, y), part.queries)
    r2 = 1.0 - float(np.sum((y - expected) ** 2)) / spread if spread else 0.0
    found = estimate(part.queries, part.position, expected, r2)
    if found.left > NEARLY_RIGHT * found.eta > 0:
        known = found.log_propensities[ranks_of(part.position)[0]] + found.trust * expected
        learner = alone._replace(objective=ListNet("unnormalized"), metrics=(NDCG(),), params=CLICKS | equal)
        if _explain_more(part.queries, known, _out_of_fold(learner, library, part.queries.labels, known)):
            found = replace(found, left=0.0, offsets=found.log_propensities)
    warn_of_labels(part.queries.labels, "position")
    return found


def _out_of_fold(run: Run, library: Library, labels: np.ndarray, margin: np.ndarray | None = None) -> np.ndarray:
    """Return what a training with these labels predicts, for each query by trees of the other half."""
    part, found = run.train, np.zeros(len(labels))
    rows = [np.flatnonzero(part.qid % 2 == half) for half in (0, 1)]
    halves = [part.take(rows[half], part.group[half::2])._replace(position=None) for half in (0, 1)]
    for half, other in ((0, 1), (1, 0)):
        target = labels[rows[half]].astype(np.float32)
        if target.min() == target.max():  # which CatBoost refuses to learn
            continue
        queries = Queries(target, halves[half].group)
        queries.of_clicks = True  # no warning of queries that have none
        start = None if margin is None else margin[rows[half]]
        train = halves[half]._replace(queries=queries, labels=target, margin=start)
        model = library.train(run._replace(train=train)).model
        found[rows[other]] = library.predict(model, halves[other].X, run.params)
    return found


def _explain_more(queries: Queries, known: np.ndarray, scores: np.ndarray) -> bool:
    """Return True if scores explain clicks that ``known`` does not, by two standard errors of the log-likelihood."""
    gain = log_chances(known + scores, queries) - log_chances(known, queries)
    gain = np.add.reduceat(queries.labels * gain, queries.ptr[:-1])
    return bool(gain.sum() > 2.0 * np.sqrt(np.sum(gain**2)))


def fits_labels(objective: AnyObjective) -> bool:
    """Return True if a training also orders or levels documents without a click, so that it learns against offsets."""
    if not isinstance(objective, Objective):
        return objective in FIT_LABELS
    parts = [innermost(each) for each in leaves(objective)]
    return any(
        part.facts.label_scale
        or isinstance(part, QueryRMSE | ListMLE | XENDCG)
        or (isinstance(part, ListNet) and part.target == "softmax")
        for part in parts
    )


def corrected(run: Run, library: Library) -> Run:
    """Return the run with the offset of each row instead of its position; as it is if there are no positions."""
    part = run.train
    if part.position is None:
        return run
    require(
        not fits_labels(run.objective),
        f"position= adds to scores, but {run.objective!r} fits the labels of documents without a click too; take "
        'another, such as "yetiloss:ndcg"',
    )
    found, offset = estimated(run, library), None
    if found.advice:
        warn(
            f"position= corrects nothing, because {found.advice}; to correct all the same, start from "
            "position_offsets(X, clicks, position, ...).at(position) instead"
        )
    else:
        offset = found.at(part.position).astype(np.float32).astype(np.float64)  # as XGBoost stores it
    part.queries.of_clicks = True
    return run._replace(train=part._replace(position=None, offset=offset), offsets=found)
