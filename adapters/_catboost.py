"""CatBoost: a training of our estimator, and a custom objective and a custom metric that see whole queries."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives._files import require_whole
from ltr_objectives.adapters._callables import (
    ByGoal,
    ObjectiveCallable,
    Placed,
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
from ltr_objectives.adapters._run import Records, Run, Trained
from ltr_objectives.adapters._tables import Part, categories, is_pool
from ltr_objectives.checks import check_choice
from ltr_objectives.diagnostics import warn_of_equal_orders
from ltr_objectives.errors import LTRError, require, warn
from ltr_objectives.libraries import Library
from ltr_objectives.metrics.base import Convention, Metric
from ltr_objectives.metrics.text import get_metric
from ltr_objectives.objectives.around import innermost
from ltr_objectives.objectives.base import Objective, read_queries
from ltr_objectives.objectives.mixture import get_objective
from ltr_objectives.queries import Queries, by_goal, vector

LOUDNESS = {"verbose", "silent", "logging_level", "verbose_eval"}
OF_FIT = ("log_cout", "log_cerr", "plot", "plot_file")  # which are not parameters
STOPPING = {"od_type", "od_pval"}


class CatBoost(Library):
    """CatBoost, by ``catboost.CatBoost``."""

    name = "catboost"
    ranker = "CatBoostRanker"
    model = "CatBoost"
    error = "CatBoostError"
    endings = (".cbm",)
    threads = "thread_count"
    first_trees = "ntree_end"
    l2 = "l2_leaf_reg"
    limits = ("depth", "min_data_in_leaf", "l2_leaf_reg")
    unread = ("bayesian_matrix_reg",)
    by_column = (
        "cat_features", "embedding_features", "feature_weights", "first_feature_use_penalties", "fixed_binary_splits",
        "ignored_features", "input_borders", "monotone_constraints", "per_feature_ctr",
        "per_float_feature_quantization", "per_object_feature_penalties", "text_features",
    )  # fmt: skip
    of_the_data = ("cat_features", "text_features", "embedding_features")
    objectives = r"[A-Z]\w*(:.*)?"
    metrics = r"[A-Z]\w*(:.*)?"
    natives = dict.fromkeys((
        "YetiRank", "YetiRankPairwise", "QueryRMSE", "StochasticRank", "QuerySoftMax", "PairLogit", "PairLogitPairwise",
        "LambdaMart", "StochasticFilter", "QueryCrossEntropy",
    ), "")  # fmt: skip
    rivals = ("YetiRank", "QueryRMSE")
    rivals_for = dict.fromkeys(("ndcg", "dcg", "map", "mrr", "err"), "YetiRank:mode={metric}")
    unusable = ("StochasticRank:metric=MAP", "YetiRank:mode=PRECISION", "StochasticFilter", "QueryCrossEntropy")
    binary = ("mode=MAP", "mode=MRR", "metric=MRR")
    capitals = True
    dtype = np.float64
    negative_hessians = True
    seed = "random_seed"

    def aliases(self) -> Sequence[tuple[str, ...]]:
        return (
            ("objective", "loss_function"), ("l2_leaf_reg", "reg_lambda"), ("early_stopping_rounds", "od_wait"),
            ("random_state", "random_seed"),
        )  # fmt: skip

    def calls(self, given: Any, method: str) -> bool:
        return hasattr(given, method)

    def shaped(self, leaves: int, l2: float, least_hessian: float) -> dict[str, Any]:
        return {
            "depth": max(1, round(np.log2(leaves))), "l2_leaf_reg": l2, "boosting_type": "Plain",
            "leaf_estimation_backtracking": "No", **self.defaults({}),
        }  # fmt: skip

    def defaults(self, params: Mapping[str, Any]) -> dict[str, Any]:
        return {"bootstrap_type": "Bernoulli" if "subsample" in params else "No", "random_strength": 0}

    def train(self, run: Run) -> Trained:
        catboost, start = self.load(), run.start or 0.0
        run = _reordered(run)
        pools, sets = _pools(run, start)
        params = _params(run, pools[0], sets[0])
        of_fit = {name: params.pop(name) for name in OF_FIT if name in params}
        _set_stopping(params, run)
        evaluated, records = _evaluated(run, pools[0], sets, params)
        given = {"eval_set": pools[1:] or None, "init_model": run.init_model, "callbacks": run.callbacks or None}
        try:
            model = catboost.CatBoost(params | evaluated).fit(pools[0], **given, **of_fit)
        except catboost.CatBoostError as error:
            if str(error).rstrip().endswith("KeyboardInterrupt"):  # else objective="auto" would go on with the next one
                raise KeyboardInterrupt from None
            raise
        require(
            model.tree_count_,
            f"CatBoost stopped {run.objective} before its first tree, for the reason that it printed; "
            "try smaller labels, a larger l2_leaf_reg or another objective",
        )
        if start:
            model.set_scale_and_bias(1.0, start)
        found = _records(model.evals_result_)
        for i, values in enumerate(records):
            found[f"validation_{i}"] |= values
        return Trained(run, model, found)

    def start(self, model: Any, X: Any) -> Any:
        return model.copy()  # trees alone: CatBoost would go on with weights of that training

    def predict(self, model: Any, X: Any, params: Mapping[str, Any], **options: Any) -> Any:
        return model.predict(X, **options)

    def rounds(self, model: Any) -> int:
        return int(model.tree_count_)

    def splits(self, model: Any) -> float:
        return float(np.sum(model.get_tree_leaf_counts() > 1))

    def features(self, model: Any) -> tuple[int, list[str] | None]:
        names: list[str] = model.feature_names_
        return len(names), None if names == [str(i) for i in range(len(names))] else names

    def read(self, path: str) -> Any:
        # of JSON that was cut short CatBoost would read numbers from memory at random; its own format has a length
        content = require_whole(path, "CatBoost", lambda content: content[:4] == b"CBM1" or json.loads(content))
        return self.load().CatBoost().load_model(path, "cbm" if content[:4] == b"CBM1" else "json")

    def merge(self, models: Sequence[Any]) -> Any:
        """The mean, by CatBoost's own function, which cannot save sums of statistics of the same categories."""
        return self.load().sum_models(list(models), [1 / len(models)] * len(models), "FailIfCtrIntersects")


LIBRARY = CatBoost()


def _reordered(run: Run) -> Run:
    """The run, its rows shuffled within queries if statistics of categories read the labels of the rows above."""
    if not isinstance(run.objective, Objective) or is_pool(run.train.X):  # CatBoost does not reorder a pool
        return run
    reads_labels = (categories(run.train.X) or run.of_the_data) and not pairs_of_rows(run.objective)
    return run._replace(train=shuffled(run.train)) if reads_labels else run


def _pools(run: Run, start: float) -> tuple[list[Any], tuple[Rows, ...]]:
    """The pools for training and for evaluation, with a score to start at, and their rows."""
    own, parts = isinstance(run.objective, Objective), (run.train, *run.evals)
    pools = [_pool(part, own, run.of_the_data) for part in parts]
    for pool in pools if start else ():
        pool.set_baseline(np.full(pool.num_row(), start))
    return pools, tuple(_rows(part, own, start) for part in parts)


def _pool(part: Part, own: bool, of_the_data: dict[str, Any]) -> Any:
    """The pool of a part, for an objective of our ``own`` or CatBoost's."""
    if is_pool(part.X):
        return part.X.slice(np.arange(part.queries.rows)) if own else part.X  # ours set weights and a baseline
    by_query = None if own else part.weight_by_query
    weight = {"weight": part.weight} if by_query is None else {"group_weight": by_query[part.qid]}
    options = {"baseline": part.margin, **of_the_data}
    found = list(categories(part.X))
    if found:
        options["cat_features"] = [*found, *(c for c in options.get("cat_features", ()) if c not in found)]
    return LIBRARY.load().Pool(part.X, part.labels, group_id=part.qid, **weight, **options)


def shuffled(part: Part) -> Part:
    """The rows of each query in random order."""
    order = np.random.default_rng(0).random(part.queries.rows)
    return part.take(np.lexsort((order, part.qid)), part.group)


def _rows(part: Part, own: bool, start: float) -> Rows:
    """The rows of the pool of a part, which ``rows_of`` would read from the pool, far more slowly."""
    weight = part.weight if own or part.weight_by_query is None else None  # a pool does not show weights by query
    baseline = np.full(len(part.labels), start) if start else part.margin
    return Rows(
        part.labels, part.group, given_weight(weight), None if baseline is None else baseline.astype(np.float32)
    )


def _params(run: Run, pool: Any, rows: Rows) -> dict[str, Any]:
    """The parameters for CatBoost, with our defaults if the objective is ours."""
    params = {"allow_writing_files": False, "loss_function": run.objective, **run.with_l2(LIBRARY)}
    params |= run.of_the_data if is_pool(run.train.X) else {}  # CatBoost compares them with the pool's
    if not LOUDNESS & params.keys():
        params["verbose"] = run.verbose
    if run.learner is None:
        return params
    splits = params.pop("newton_splits", True)
    warn_of_pairs(pool, run.learner)
    made = CatBoostObjective(run.learner, rows, run.train.queries, newton_splits=splits, n_threads=run.n_threads)
    params["loss_function"] = made.prepare(pool)
    return {
        "leaf_estimation_method": "Newton",
        "one_hot_max_size": 10,
        **LIBRARY.defaults(params),
        **({"has_time": True} if len(pool.get_cat_feature_indices()) > 0 else {}),
        **params,
    }


def _set_stopping(params: dict[str, Any], run: Run) -> None:
    """Set how the training stops. Without early stopping all rounds are kept."""
    params |= {"od_wait": run.patience} if run.patience else {}
    for name in sorted(STOPPING & params.keys()):
        require(run.evals, f"{name}= needs an eval_set to look at; pass eval_set=[(X, y)] and eval_qid=")
    if not _stops(params):
        params.setdefault("use_best_model", False)


def _stops(params: Mapping[str, Any]) -> bool:
    return bool(params.get("od_wait") or STOPPING & params.keys() or params.get("use_best_model"))


def _evaluated(
    run: Run, pool: Any, sets: tuple[Rows, ...], params: Mapping[str, Any]
) -> tuple[dict[str, Any], list[dict[str, list[float]]]]:
    """The parameters with what CatBoost evaluates; and, filled by the training, by eval set our metrics but the first.

    CatBoost takes one metric object, so that ours computes the others too.
    """
    own, native, objects = run.own_metrics, run.native_metrics, run.functions
    require(len(objects) + bool(own) < 2, f"CatBoost calls one metric object, perhaps ours; leave {objects} out")
    first, chosen = (next(iter(metrics), None) for metrics in (run.metrics, [*own, *objects, *native]))
    require(
        not _stops(params) or first is chosen,
        f"CatBoost stops early on {first} only if no other metric is ours or an object; name {chosen} first, or leave "
        "out early stopping or one of them",
    )
    others = native if own or objects else native[1:]
    custom = {"custom_metric": others} if others else {}
    if not own:
        return custom | ({} if chosen is None else {"eval_metric": chosen}), []
    queries = tuple(part.queries for part in (run.train, *run.evals))
    has_categories = len(pool.get_cat_feature_indices()) > 0
    any_order = has_categories and not isinstance(run.objective, Objective) and not params.get("has_time")
    made = CatBoostMetric(own[0], sets, queries, run.n_threads, own[1:], any_order)
    return custom | {"eval_metric": made}, made.records


def _records(found: dict[str, Any]) -> Records:
    """Return the records of CatBoost without the training set; CatBoost calls a single eval set "validation"."""
    return {
        "validation_0" if name == "validation" else name: {metric: list(v) for metric, v in values.items()}
        for name, values in found.items()
        if name != "learn"
    }


class CatBoostObjective(ObjectiveCallable):
    """The ``loss_function`` that :func:`catboost_objective` makes.

    It holds configuration only. ``fit`` copies it, and the copy follows that one training. So one object serves any
    number of trainings, even at the same time.
    """

    library = LIBRARY

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
        """First and second derivatives of one block of rows, shape (block, 2), in CatBoost's signs."""
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
            model = LIBRARY.read(os.fspath(model))
        if model is not None:
            return np.asarray(model.predict(fit.pool, prediction_type="RawFormulaVal"), np.float64)
        baseline = self._rows.baseline
        return np.zeros(len(self._rows.labels)) if baseline is None else baseline.astype(np.float64)


class CatBoostMetric(Placed):
    """The ``eval_metric`` that :func:`catboost_metric` makes. It holds configuration only."""

    library = LIBRARY
    role = "metric"

    def __new__(cls, metric: Metric, *arguments: Any) -> CatBoostMetric:
        """An instance of a class named like the metric: CatBoost records values under the name of the class."""
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
        self._made_of = metric, sets, queries, n_threads, others, any_order
        self.metric, self._sets, self._queries, self.n_threads, self._others, self._any_order = self._made_of
        self.records: list[dict[str, list[float]]] = [{str(m): [] for m in others} for _ in sets[1:]]
        self._seen: dict[int, tuple[Queries, np.ndarray | None, int]] | None = None  # by address of the labels

    def __repr__(self) -> str:
        return f"{self.__name__}({self.metric!r}, {len(self._sets)} pools)"

    def __reduce__(self) -> tuple[Any, ...]:
        return CatBoostMetric, self._made_of

    def __deepcopy__(self, memo: dict[int, Any]) -> CatBoostMetric:
        twin = CatBoostMetric(*self._made_of)
        twin.records = self.records
        fit = fit_under_way()
        if fit is not None:
            self._check(fit)
            twin.n_threads = LIBRARY.n_threads(fit.params, self.n_threads)
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
        """All metrics are maximised."""
        return True

    def get_final_error(self, error: float, weight: float) -> float:
        """The value itself: ``evaluate`` sees whole data sets."""
        return error

    def evaluate(
        self, approxes: list[np.ndarray], target: np.ndarray, weight: np.ndarray | None
    ) -> tuple[float, float]:
        """The metric's mean over one data set, known by the address of its labels."""
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
                queries = Queries(by_goal(target, queries.goals), self._sets[i].group, weight=weight)
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
    propensity: ArrayLike | None = None, position: ArrayLike | None = None, labels: ByGoal | None = None,
    n_threads: int | None = None, newton_splits: bool = True,
) -> CatBoostObjective:  # fmt: skip
    r"""An objective for CatBoost's ``loss_function``.

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
    propensity, position, labels
        Of the rows of the training set, as of :class:`ltr_objectives.Queries`; ``labels`` by goal beside its own.
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
    by_name = by_goal(rows.labels, read_labels(labels))
    queries = read_queries(chosen, by_name, rows.group, weight=weight, propensity=propensity, position=position)
    made = CatBoostObjective(chosen, rows, queries, newton_splits=newton_splits, n_threads=n_threads)
    return made.prepare(pool)


def catboost_metric(
    metric: str | Metric, *pools: Any, convention: Convention | None = None, n_threads: int | None = None
) -> CatBoostMetric:
    """A metric for CatBoost's ``eval_metric``; early stopping and ``use_best_model`` maximise it.

    Parameters
    ----------
    metric : str or Metric
        Such as ``"ndcg@10"``.
    *pools : catboost.Pool
        The training pool, then each pool of ``eval_set`` in order; each with ``group_id``.
    convention : str, optional
        As of :func:`ltr_objectives.get_metric`.
    n_threads : int, optional
        By default ``thread_count`` of the training, at most all processors. The value does not depend on it.

    Returns
    -------
    CatBoostMetric
        Its values are means over queries, weighted by the pools' weights, as of :func:`ltr_objectives.evaluate`. It
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
