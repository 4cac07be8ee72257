"""CatBoost: a custom objective and a custom metric that see whole queries."""

from __future__ import annotations

import copy
import os
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.adapters._callables import (
    ByGoal,
    ObjectiveCallable,
    OfLibrary,
    equal,
    pairs_of_rows,
    read_labels,
    refuse_goals,
)
from ltr_objectives.adapters._catboost_fit import (
    NOT_A_FIT,
    WEIGHTS_BY_CLASS,
    Fit,
    Rows,
    fit_under_way,
    given_weight,
    keep_weights,
    rows_of,
)
from ltr_objectives.adapters._catboost_passes import Passes, address_of
from ltr_objectives.checks import check_choice
from ltr_objectives.errors import LTRError, require, warn
from ltr_objectives.metrics.base import Convention, Metric
from ltr_objectives.metrics.equal_orders import warn_of_equal_orders
from ltr_objectives.metrics.text import get_metric
from ltr_objectives.objectives.around import innermost
from ltr_objectives.objectives.base import Objective, read_queries
from ltr_objectives.objectives.mixture import get_objective
from ltr_objectives.queries import Queries, labels_by_goal, vector


class CatBoostObjective(ObjectiveCallable):
    """The ``loss_function`` that :func:`catboost_objective` makes.

    It holds configuration only. ``fit`` copies it, and the copy follows that one training. So one object serves any
    number of trainings, even at the same time.
    """

    of = "catboost"

    def __init__(
        self, objective: Objective, rows: Rows, queries: Queries, *, newton_splits: bool, n_threads: int | None
    ) -> None:
        super().__init__(objective, n_threads=n_threads)
        self.newton_splits = newton_splits
        self._rows = rows
        self._queries = queries
        self._passes: Passes | None = None  # of a copy that fit made

    def prepare(self, pool: Any) -> CatBoostObjective:
        """Give the pool weights if the splits need them: before ``fit``, because others may use it later."""
        check_choice("newton_splits", self.newton_splits, (True, False))
        if len(pool.get_cat_feature_indices()):
            self._rows.warn_if_sorted()
        if self.newton_splits and given_weight(self._queries.weight_by_row) is None:
            keep_weights(pool, self._rows.group)
        return self

    def __repr__(self) -> str:
        return f"catboost_objective({self.objective!r}, {self._queries!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_passes": None}

    def __deepcopy__(self, memo: dict[int, Any]) -> CatBoostObjective:
        twin = copy.copy(self)
        fit = fit_under_way()
        twin._passes = None if fit is None else twin._follow(fit)
        return twin

    def calc_ders_range(self, approxes: np.ndarray, targets: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        """Return first and second derivatives of one block of rows, shape (block, 2), in CatBoost's signs."""
        if self._passes is None:
            raise LTRError(NOT_A_FIT)
        derivatives: np.ndarray = self._passes.answer(approxes, targets, weights)
        return derivatives

    def _follow(self, fit: Fit) -> Passes:
        found = rows_of(fit.pool, "fit's first argument")
        self._rows.check_same(found, "the pool given to catboost_objective", "fit's pool")
        fit.require_known_rows()
        fit.refuse(WEIGHTS_BY_CLASS)
        self.prepare(fit.pool)
        weight = self._queries.weight_by_row
        return Passes(
            self._rows.labels,
            None if weight is None else weight.astype(np.float32),
            self._scores_at_start(fit),
            lambda scores, new_tree: self.gradients(
                self._queries, scores, fit.params, training=self, new_tree=new_tree
            ),
            self.newton_splits,
        )

    def _scores_at_start(self, fit: Fit) -> np.ndarray:
        model = fit.init_model
        if isinstance(model, str | os.PathLike):
            model = self.library.read(os.fspath(model))
        if model is not None:
            return np.asarray(model.predict(fit.pool, prediction_type="RawFormulaVal"), np.float64)
        baseline = self._rows.baseline
        return np.zeros(len(self._rows.labels)) if baseline is None else baseline.astype(np.float64)


class CatBoostMetric(OfLibrary):
    """The ``eval_metric`` that :func:`catboost_metric` makes. It holds configuration only."""

    of = "catboost"
    role = "metric"

    def __new__(cls, metric: Metric, *arguments: Any) -> CatBoostMetric:
        """Make an instance of a class named like the metric: CatBoost records values under the name of the class."""
        return object.__new__(type(str(metric), (cls,), {}))

    def __init__(
        self,
        metric: Metric,
        sets: tuple[Rows, ...],
        queries: tuple[Queries, ...],  # of the sets
        n_threads: int | None = None,
        others: tuple[Metric, ...] = (),  # computed too, because CatBoost takes one metric object
        any_order: bool = False,  # whether CatBoost may shuffle the training set, whose values are then 0
    ) -> None:
        self.metric, self._others, self.n_threads = metric, others, n_threads
        self._sets, self._queries, self._any_order = sets, queries, any_order
        self.records: list[dict[str, list[float]]] = [{str(m): [] for m in others} for _ in sets[1:]]
        self._seen: dict[int, tuple[Queries, np.ndarray | None, int]] | None = None  # by address of the labels

    def __repr__(self) -> str:
        return f"{self.__name__}({self.metric!r}, {len(self._sets)} pools)"

    def __reduce__(self) -> tuple[Any, ...]:
        of_sets = self._sets, self._queries
        return CatBoostMetric, (self.metric, *of_sets, self.n_threads, self._others, self._any_order)

    def __deepcopy__(self, memo: dict[int, Any]) -> CatBoostMetric:
        twin = copy.copy(self)
        twin.records = self.records
        fit = fit_under_way()
        if fit is not None:
            self._check(fit)
            twin.n_threads = self.library.n_threads(fit.params, self.n_threads)
            twin._seen = {}
        return twin

    def _check(self, fit: Fit) -> None:
        pools = (fit.pool, *fit.eval_sets)
        require(
            len(pools) == len(self._sets),
            f"fit has {len(pools) - 1} eval sets beside the training pool, but catboost_metric was given "
            f"{len(self._sets)} pools; give it the training pool, then each pool of eval_set in order",
        )
        for i, (known, pool) in enumerate(zip(self._sets, pools, strict=True)):
            name = f"fit's eval set {i - 1}" if i else "fit's training pool"
            known.check_same(rows_of(pool, name), f"pool {i} of catboost_metric", name)
            self.metric.layers(self._queries[i])  # raises for labels that the metric refuses
        fit.require_known_rows(self._any_order)

    def is_max_optimal(self) -> bool:
        """Return True, because all metrics are maximised."""
        return True

    def get_final_error(self, error: float, weight: float) -> float:
        """Return the value itself, because ``evaluate`` has whole data sets."""
        return error

    def evaluate(
        self, approxes: list[np.ndarray], target: np.ndarray, weight: np.ndarray | None
    ) -> tuple[float, float]:
        """Return the metric's mean over one data set, known by the address of its labels."""
        if self._seen is None:
            raise LTRError(NOT_A_FIT)
        address, weight = address_of(target), given_weight(weight)
        if address not in self._seen:  # in the first round: the training set, then the eval sets
            i = len(self._seen)
            known = i < len(self._sets) and np.array_equal(target, self._sets[i].labels)
            require(
                known or (i == 0 and self._any_order),
                "CatBoost evaluates other rows, or another order, than those given to catboost_metric",
            )
            queries = self._queries[i]
            if not equal(weight, given_weight(queries.weight_by_row)):
                queries = Queries(labels_by_goal(target, queries.goals), self._sets[i].group, weight=weight)
            self._seen[address] = queries, weight, i
        queries, before, i = self._seen[address]
        if i == 0 and self._any_order:
            return 0.0, 1.0
        same = equal(weight, before) and queries.rows == len(target)
        require(same, "CatBoost evaluates with other rows or weights than before")
        if i > 0:
            for other in self._others:
                value = other.mean(queries, approxes[0], n_threads=self.n_threads)
                self.records[i - 1][str(other)].append(value)
        return self.metric.mean(queries, approxes[0], n_threads=self.n_threads), 1.0


def warn_of_pairs(pool: Any, objective: Objective) -> None:
    """Warn if the pool has pairs that the objective does not read."""
    if pool.num_pairs() and not pairs_of_rows(objective):
        warn(
            f"{innermost(objective).name} does not read the {pool.num_pairs()} pairs of the pool, which CatBoost does "
            "not give back; write Preferences(pairs, rows=len(y), pairs_weight=weight), or leave them out"
        )


def catboost_objective(
    objective: str | Objective, pool: Any, *, group_weight: ArrayLike | None = None,
    propensity: ArrayLike | None = None, labels: ByGoal | None = None, n_threads: int | None = None,
    newton_splits: bool = True,
) -> CatBoostObjective:  # fmt: skip
    r"""Make an objective for CatBoost's ``loss_function``.

    CatBoost shows user-defined objectives blocks of rows without queries. This object knows the queries from the pool,
    recognises the rows of each block, and raises for whatever does not fit.

    Parameters
    ----------
    objective : str or Objective
        Such as ``YetiLoss("map")`` or ``"yetiloss:map"``.
    pool : catboost.Pool
        The pool that ``fit`` will get, or one with the same labels, queries, weights and baseline; with ``group_id``.
    group_weight : array of shape (queries,) or (rows,), optional
        The ``group_weight`` of the pool, because CatBoost does not give it back. Weights by row are read from the pool.
    propensity, labels
        Of the rows of the training set, as in :class:`ltr_objectives.Queries`; ``labels`` by goal beside its own.
    n_threads : int, optional
        By default ``thread_count`` of the training, at most all processors. The model does not depend on it.
    newton_splits : bool
        Score splits by :math:`(\sum g)^2 / \sum h`, as XGBoost and LightGBM do. Without it they are scored by
        :math:`(\sum g)^2 / n`, as CatBoost does for user-defined objectives. See the notes.

    Returns
    -------
    CatBoostObjective
        For ``CatBoost({"loss_function": ..., "eval_metric": ...}).fit(pool)``. CatBoost needs some ``eval_metric``: a
        name such as ``"NDCG"``, or a :func:`catboost_metric`. The object can be pickled, used again, and used for
        several trainings at the same time.

    Notes
    -----
    With ``newton_splits`` the Hessians, negative ones as 0, replace CatBoost's weights of rows while a tree is grown.
    Leaves, metrics and the pool keep the weights that were given. A pool without weights gets a ``group_weight`` of 1
    for each query, after which ``pool.set_group_id`` fails.

    Set ``random_strength=0``, because the noise that CatBoost adds to the scores of splits grows with the Hessians. If
    nearly all gradients are zero, its default bootstrap, MVS, stops with "Too few sampling units": set
    ``bootstrap_type="Bernoulli"`` or ``"No"``. With categorical features set ``one_hot_max_size=10``, as CatBoost does
    for its own ranking losses.

    Examples
    --------
    >>> import numpy as np
    >>> from catboost import CatBoost, Pool
    >>> rng = np.random.default_rng(0)
    >>> X, y, qid = rng.normal(size=(60, 3)), rng.integers(0, 3, 60), np.repeat([0, 1, 2], 20)
    >>> pool = Pool(X, y, group_id=qid)
    >>> parameters = {"iterations": 3, "verbose": False, "allow_writing_files": False}
    >>> loss = catboost_objective("yetiloss:map", pool)
    >>> model = CatBoost({"loss_function": loss, "eval_metric": "NDCG", **parameters}).fit(pool)
    >>> model.predict(pool).shape
    (60,)
    """
    rows, chosen = rows_of(pool), get_objective(objective)
    warn_of_pairs(pool, chosen)
    weight = rows.weight
    if group_weight is not None:
        require(weight is None, "the pool has weights by row; CatBoost takes either those or group_weight")
        weight = vector("group_weight", group_weight).astype(np.float32)
    by_name = labels_by_goal(rows.labels, read_labels(labels))
    queries = read_queries(chosen, by_name, rows.group, weight=weight, propensity=propensity)
    made = CatBoostObjective(chosen, rows, queries, newton_splits=newton_splits, n_threads=n_threads)
    return made.prepare(pool)


def catboost_metric(
    metric: str | Metric, *pools: Any, convention: Convention | None = None, n_threads: int | None = None
) -> CatBoostMetric:
    """Make a metric for CatBoost's ``eval_metric``; early stopping and ``use_best_model`` maximise it.

    Parameters
    ----------
    metric : str or Metric
        Such as ``"ndcg@10"``.
    *pools : catboost.Pool
        The training pool, then each pool of ``eval_set`` in order; each with ``group_id``.
    convention : str, optional
        As in :func:`ltr_objectives.get_metric`.
    n_threads : int, optional
        By default ``thread_count`` of the training, at most all processors. The value does not depend on it.

    Returns
    -------
    CatBoostMetric
        Its values are means over queries, weighted by the pools' weights, as in :func:`ltr_objectives.evaluate`. It
        also works beside CatBoost's own losses.

    Examples
    --------
    >>> import numpy as np
    >>> from catboost import CatBoost, Pool
    >>> rng = np.random.default_rng(0)
    >>> X, y, qid = rng.normal(size=(60, 3)), rng.integers(0, 3, 60), np.repeat([0, 1, 2], 20)
    >>> train, valid = Pool(X, y, group_id=qid), Pool(X[::-1], y[::-1], group_id=qid)
    >>> parameters = {"loss_function": "QueryRMSE", "eval_metric": catboost_metric("ndcg@10", train, valid)}
    >>> model = CatBoost({"iterations": 3, "verbose": False, "allow_writing_files": False, **parameters})
    >>> sorted(model.fit(train, eval_set=valid).evals_result_)
    ['learn', 'validation']
    """
    require(len(pools) > 0, "catboost_metric needs the training pool, then the pools of eval_set in order")
    rows = tuple(rows_of(pool, f"pool {i}") for i, pool in enumerate(pools))
    chosen = get_metric(metric, convention)
    refuse_goals([chosen])
    queries = tuple(Queries(each.labels, each.group) for each in rows)
    for i, each in enumerate(queries[1:], 1):
        warn_of_equal_orders([chosen], each, f"pool {i} of catboost_metric", n_threads)
    return CatBoostMetric(chosen, rows, queries, n_threads)
