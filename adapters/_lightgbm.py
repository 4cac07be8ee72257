"""LightGBM: a training of our estimator."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from ltr_objectives._files import require_whole
from ltr_objectives.adapters._callables import Params
from ltr_objectives.adapters._names import refuse_same_names, unknown_metric, unknown_objective
from ltr_objectives.adapters._run import Records, Run, Trained, is_off, refuse_dart
from ltr_objectives.adapters._tables import (
    categorical,
    categories,
    is_frame,
    names_of,
    read_columns,
    refuse_categories,
    refuse_text,
    require_same_categories,
    require_same_kinds,
)
from ltr_objectives.checks import is_number
from ltr_objectives.errors import LTRError, did_you_mean, require
from ltr_objectives.libraries import Library
from ltr_objectives.metrics.base import Metric

END = re.compile(  # of a model file
    rb"\nend of trees\n.*\nend of parameters\s*(\npandas_categorical:(null|\[.*\])\s*)?\Z", re.DOTALL
)
SIZES = re.compile(rb"^tree_sizes=(.*)$", re.MULTILINE)  # one for each tree
A_TREE = re.compile(r"^Tree=\d+\n", re.MULTILINE)
OF_A_LEAF = re.compile(r"^(leaf_value|leaf_const|leaf_coeff|internal_value|shrinkage)=.*$", re.MULTILINE)
SEEN = ("model", "params", "iteration", "begin_iteration", "end_iteration")  # by callbacks, in every version


class LightGBM(Library):
    """LightGBM, by ``lgb.train``."""

    name = "lightgbm"
    ranker = "LGBMRanker"
    model = "Booster"
    error = "basic.LightGBMError"
    endings = (".txt",)
    threads = "num_threads"
    l2 = "reg_lambda"
    l2_default = 0.0
    usual_leaves: ClassVar = {
        "boosting": ("gbdt", "gbrt", "goss"), "linear_tree": (False,), "monotone_constraints": (),
        "max_delta_step": (0,),
    }  # fmt: skip
    limits = ("min_child_samples", "min_split_gain", "min_sum_hessian_in_leaf", "reg_lambda", "reg_alpha")
    unread = (
        "label_gain", "lambdarank_truncation_level", "lambdarank_norm", "lambdarank_position_bias_regularization",
        "sigmoid", "objective_seed", "alpha", "fair_c", "is_unbalance", "poisson_max_delta_step", "reg_sqrt",
        "scale_pos_weight", "tweedie_variance_power", "num_class",
    )  # fmt: skip
    by_column = (
        "categorical_feature", "cegb_penalty_feature_coupled", "cegb_penalty_feature_lazy", "feature_contri",
        "forcedbins_filename", "forcedsplits_filename", "ignore_column", "interaction_constraints",
        "max_bin_by_feature", "monotone_constraints",
    )  # fmt: skip
    of_the_data = ("categorical_feature", "feature_name")
    objectives = r"(?!multiclass|softmax|ov[ar])[a-z]\w*"
    metrics = r"[a-z]\w*"
    regression = "regression"
    natives: ClassVar = {"lambdarank": "lambdamart:preset=lightgbm", "rank_xendcg": "xendcg:hessian=exact"}
    rivals = ("lambdarank", "rank_xendcg")
    least_patience = -1  # as 0, no early stopping
    least_hessian = "min_sum_hessian_in_leaf"
    least_hessian_default = 1e-3

    def aliases(self) -> Sequence[tuple[str, ...]]:
        """Return LightGBM's own table, which is not public."""
        return _aliases()

    def shaped(self, leaves: int, l2: float, least_hessian: float) -> dict[str, Any]:
        return {"num_leaves": leaves, "lambda_l2": l2, "min_sum_hessian_in_leaf": least_hessian}

    def reproducible(self) -> dict[str, Any]:  # else timing chooses an algorithm, and so the last digits
        return {"deterministic": True, "force_col_wise": True}

    def train(self, run: Run) -> Trained:
        require(
            run.init_model is None or run.train.margin is None,
            "LightGBM replaces init_score by what init_model predicts; leave it out and add it to init_score",
        )
        refuse_text(run.train.X)
        refuse_categories(run.train.X, _are_stored, "text or numbers")
        boosting = "".join(map(str, self.given("boosting", run.params).values())).lower()
        linear = any(not is_off(each) for each in self.given("linear_tree", run.params).values())
        # leaves of linear trees, and initial scores of a forest, cannot be set
        start = None if linear or boosting in ("rf", "random_forest") else run.start
        params = _params(run, boosting, start)
        # because predictions of init_model replace init_score
        added_offset = None if run.init_model is None else run.train.offset
        gradients = run.gradients(self, params, added_offset)
        require(
            added_offset is None or gradients is not None,
            f"position= with init_model= needs one of our objectives, got {run.objective!r}",
        )
        own: Any = run.objective
        objective = gradients or (own if isinstance(own, str) else _of_labels(own))
        data = _datasets(run.starting_at(start) if added_offset is None else run)
        booster, records = _trained(run, objective, params, data)
        booster.free_dataset()
        if start and booster.num_trees():  # as LightGBM's own boost_from_average does
            _raise_leaves(booster, start)
        return Trained(run, booster, records)

    def start(self, model: Any, X: Any) -> Any:
        require_same_categories(model.pandas_categorical or [], X)
        known = model.feature_name()
        names = [self.stored(c) for c in X.columns] if is_frame(X) else known
        require(
            names == known or known[0].startswith("Column_"),  # LightGBM's names for an array
            f"X has the columns {names}, but init_model was trained on {known}; give these, in this order",
        )
        if not 0 < model.best_iteration < model.current_iteration():
            return model
        return self.load().Booster(model_str=model.model_to_string())  # the rounds that it predicts with

    def predict(self, model: Any, X: Any, params: Mapping[str, Any], **options: Any) -> Any:
        if not self.given(self.threads, options):
            options[self.threads] = next(iter(self.given(self.threads, params).values()), processors(None))
        return model.predict(X, **options)

    def rounds(self, model: Any) -> int:
        best: int = model.best_iteration
        return best if best > 0 else int(model.current_iteration())

    def splits(self, model: Any) -> float:
        return float(model.feature_importance("split").sum())

    def categories(self, model: Any, X: Any) -> Mapping[Any, Sequence[Any]]:
        return dict(zip(categories(X), model.pandas_categorical or (), strict=False))

    def stored(self, column: Any) -> str:
        return str(column).replace(" ", "_")

    def features(self, model: Any) -> tuple[int, list[str] | None]:
        names: list[str] = model.feature_name()
        return len(names), None if names == [f"Column_{i}" for i in range(len(names))] else names

    def read(self, path: str) -> Any:
        def is_whole(content: bytes) -> bool:  # else LightGBM reads fewer trees, or ends the process
            sizes = SIZES.search(content)
            return bool(END.search(content) and (not sizes or len(sizes[1].split()) == content.count(b"\nTree=")))

        require_whole(path, "LightGBM", is_whole)
        return self.load().Booster(model_file=path)

    def merge(self, models: Sequence[Any]) -> Any:
        """Return the mean, by the lines of LightGBM's text, versions 4.0 to 4.7."""

        def divided(line: re.Match[str]) -> str:
            name, _, numbers = line[0].partition("=")
            return f"{name}={re.sub(r'[^ ]+', lambda number: repr(float(number[0]) / len(models)), numbers)}"

        texts = [model.model_to_string() for model in models]
        require("\naverage_output\n" not in texts[0], "bags are a sum of trees, and boosting='rf' averages them")
        heads, ends = zip(*(text.split("end of trees\n") for text in texts), strict=True)
        head, *_ = A_TREE.split(heads[0])
        trees = [tree for each in heads for tree in A_TREE.split(each)[1:]]
        numbered = (f"Tree={i}\n{OF_A_LEAF.sub(divided, tree)}" for i, tree in enumerate(trees))
        head = re.sub(r"^tree_sizes=.*\n", "", head, flags=re.MULTILINE)
        return type(models[0])(model_str="".join([head, *numbered, "end of trees\n", ends[0]]))

    def leaves(
        self, model: Any, X: Any, params: Mapping[str, Any]
    ) -> tuple[list[np.ndarray], np.ndarray, list[float], float]:
        trees = model.dump_model()["tree_info"]
        values = [np.array([model.get_leaf_output(i, n) for n in range(t["num_leaves"])]) for i, t in enumerate(trees)]
        rows = self.predict(model, X, params, pred_leaf=True).reshape(len(X), -1)
        return values, rows, [tree["shrinkage"] for tree in trees], 0.0

    def with_leaves(self, model: Any, values: Sequence[np.ndarray]) -> Any:
        model = self.load().Booster(model_str=model.model_to_string())
        for i, of_tree in enumerate(values):
            for n, value in enumerate(of_tree):
                model.set_leaf_output(i, n, value)
        return model


LIBRARY = LightGBM()


@functools.cache
def _aliases() -> tuple[tuple[str, ...], ...]:
    groups = LIBRARY.load().basic._ConfigAliases._get_all_param_aliases().values()
    return tuple(("eval_metric", *names) if "metric" in names else tuple(names) for names in groups)


def processors(n: Any) -> Any:
    """Return the number of threads as LightGBM's own ranker reads it."""
    from joblib import cpu_count  # which LightGBM itself does not need

    if n is None:
        return cpu_count(only_physical_cores=True)
    if not is_number(n):
        return n
    return int(n) if n >= 0 else max(cpu_count() + 1 + int(n), 1)


def _datasets(run: Run) -> list[Any]:
    """Make the data sets for training and for evaluation."""
    given, X = dict(run.of_the_data), run.train.X  # LightGBM leaves out what is not a list
    if given.get("feature_name", "auto") != "auto":
        given["feature_name"] = [*given["feature_name"]]
    if not (isinstance(chosen := given.get("categorical_feature", "auto"), str) and chosen == "auto"):
        names = given.get("feature_name") or names_of(X) or ()
        given["categorical_feature"] = read_columns(chosen, names, X.shape[1], "categorical_feature")
    train, *evals = (
        LIBRARY.load().Dataset(
            part.X, part.labels, group=part.group, weight=part.weight, init_score=part.margin, **given
        )
        for part in (run.train, *run.evals)
    )
    for i, data in enumerate(evals):
        require_same_kinds(run.evals[i].X, categorical(run.train.X), f"eval_set[{i}]")
        data.set_reference(train)
    return [train, *evals]


def _trained(run: Run, objective: Any, params: dict[str, Any], data: Sequence[Any]) -> tuple[Any, Records]:
    """Train an objective, LightGBM's or a function, on data sets as it reads them; return the model and its records."""
    lgb, (train, *evals) = LIBRARY.load(), data
    rounds = params.pop("n_estimators", 100)
    threads = {} if LIBRARY.given(LIBRARY.threads, params) else {LIBRARY.threads: processors(None)}
    records: Records = {}

    def trained(objective: Any, **more: Any) -> Any:
        callbacks = [*run.callbacks, lgb.record_evaluation(records), *_callbacks(run, params)]
        return lgb.train(
            {"objective": objective, **params, **threads, **more}, train, rounds, valid_sets=evals,
            valid_names=run.names, init_model=run.init_model, feval=_as_metrics(run, evals), callbacks=callbacks,
        )  # fmt: skip

    try:
        return trained(objective), records
    except lgb.basic.LightGBMError as error:  # a function needs a column that is not 0 everywhere
        if "num_features" not in str(error):
            raise
        return trained("regression", boost_from_average=False), records  # which adds a tree without a split


def _raise_leaves(booster: Any, start: float) -> None:
    """Add the initial score to the leaves of the first tree."""
    for leaf in range(booster.dump_model(num_iteration=1)["tree_info"][0]["num_leaves"]):
        booster.set_leaf_output(0, leaf, booster.get_leaf_output(0, leaf) + start)


def _are_stored(categories: Any) -> bool:
    """Return True for categories that LightGBM's file can hold."""
    return all(isinstance(each, str | int | float) for each in categories.tolist())


def _callbacks(run: Run, params: dict[str, Any]) -> list[Any]:
    """Return what LightGBM calls after each round: a check of names, printing, and early stopping."""
    lgb = LIBRARY.load()
    found: list[Any] = [_refuse_same_names]
    if run.verbose and run.evals:
        found.append(lgb.log_evaluation(int(run.verbose)))
    if run.patience:
        min_delta = next(iter(LIBRARY.given("early_stopping_min_delta", params).values()), 0.0)
        found.append(_looking_at(lgb.early_stopping(run.patience, True, bool(run.verbose), min_delta), run))
    return found


def _as_metrics(run: Run, evals: Sequence[Any]) -> list[Any]:
    """Return our metrics and functions, for ``lgb.train``."""
    values, functions = run.metric_values(evals), map(_of_labels, run.functions)
    own = [lambda scores, data: [(*each, True) for each in values(scores, data)]] if run.own_metrics else []
    return [*own, *functions]


def _of_labels(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """Return a function of labels and scores, and perhaps weights and sizes, as ``lgb.train`` calls it."""
    n = max(2, len(inspect.signature(function).parameters))
    return lambda scores, data: function(*(data.get_label(), scores, data.get_weight(), data.get_group())[:n])


def parameter_names() -> set[str]:
    """Return all names of all parameters."""
    return {alias for names in LIBRARY.aliases() for alias in names}


def _params(run: Run, boosting: str, start: float | None) -> dict[str, Any]:
    """Return the parameters for LightGBM, with our defaults; raise for those that it would ignore."""
    params = dict(run.params) if start is None and _is_far(run) else run.with_l2(LIBRARY)
    for name, value in (("verbosity", -1), ("num_leaves", 31)):  # its default; else it warns of max_depth
        if not LIBRARY.given(name, params):
            params[name] = value
    if run.metrics:
        params["metric"] = run.native_metrics or "None"
        if unknown := [name for name in run.native_metrics if not _knows(metric=name)]:
            raise LTRError(unknown_metric(unknown[0], LIBRARY))
    _refuse_ignored(run, params, boosting)
    if isinstance(run.objective, str):
        if not _knows(objective=run.objective):
            raise LTRError(unknown_objective(run.objective, LIBRARY))
    else:
        refuse_bagging_by_query(params)
        params.setdefault("feature_pre_filter", False)  # LightGBM fails with a function if it drops every column
    return params


def _refuse_ignored(run: Run, params: Params, boosting: str) -> None:
    """Raise for parameters that the training would not read, or not as they say."""
    require(
        "class_weight" not in params,
        "class_weight= is not read; give fit sample_weight=, as compute_sample_weight(class_weight, y) of scikit-learn",
    )
    known = parameter_names()
    for name in sorted(params.keys() - known):
        raise LTRError(f"LightGBM knows no parameter {name!r}{did_you_mean(name, LIBRARY.aliases())}")
    unread = LIBRARY.given("eval_at", params) if run.metrics and not run.native_metrics else {}
    require(not unread, "LightGBM's own metrics alone read eval_at=; name the cutoffs in eval_metric=")
    refuse_dart("boosting='dart'" if boosting == "dart" else "", run.patience)
    require(
        not (is_off(params.get("first_metric_only")) and run.patience and len(run.metrics) > 1),
        "first_metric_only=False: early stopping looks at the first metric alone; leave it out, or name one metric",
    )


def _is_far(run: Run) -> bool:
    """Return True if the first gradients are nearly equal and far from 0, so that with an L2 no split pays.

    LightGBM stops at a tree without a split.
    """
    if run.learner is None or not run.learner.facts.label_scale:
        return False
    scores = np.zeros(len(run.train.labels)) if run.train.margin is None else run.train.margin
    if run.init_model is not None:
        scores = run.init_model.predict(run.train.X, raw_score=True, num_threads=run.n_threads or 0)
    grad, _ = run.learner.compute(run.train.queries, scores, n_threads=run.n_threads)
    return bool(abs(grad.mean()) > grad.std())


def _knows(objective: str = "none", metric: str = "None") -> bool:
    """Try an objective or a metric on two rows, because LightGBM leaves out metrics that it does not know."""
    lgb, quiet = LIBRARY.load(), {"verbosity": -1, "num_threads": 1}
    rows = lgb.Dataset(np.array([[0.0], [1.0]]), [0.0, 1.0], group=[2], params=quiet)
    try:
        found = lgb.Booster({"objective": objective, "metric": metric, **quiet}, rows).eval_train()
    except lgb.basic.LightGBMError as error:  # it may know the metric, which needs other parameters
        return "Unknown objective" not in str(error)
    return bool(found) or metric == "None"


def _refuse_same_names(env: Any) -> None:
    refuse_same_names([each[1] for each in env.evaluation_result_list if each[0] == env.evaluation_result_list[0][0]])


def _looking_at(stop: Callable[[Any], None], run: Run) -> Callable[[Any], None]:
    """Return LightGBM's early stopping ``stop``, shown only the last eval set and the first metric."""
    first, own = next(iter(run.metrics), None), {str(m) for m in run.own_metrics}
    require(
        first not in run.functions or not run.native_metrics,
        f"LightGBM stops early on {' '.join(run.native_metrics)} if it is evaluated beside functions; name it first",
    )

    def is_first(metric: str) -> bool:
        return metric == str(first) if isinstance(first, Metric) else metric not in own

    def callback(env: Any) -> None:
        seen = [r for r in env.evaluation_result_list if r[0] == run.names[-1] and is_first(r[1])]
        stop(SimpleNamespace(**{field: getattr(env, field) for field in SEEN}, evaluation_result_list=seen))

    callback.order = 30  # type: ignore[attr-defined]  # where LightGBM looks for it
    return callback


def refuse_bagging_by_query(params: Params) -> None:
    """Raise for a parameter with which LightGBM learns nothing from custom objectives."""
    require(
        str(params.get("bagging_by_query", False)).lower() in ("false", "0"),
        "with bagging_by_query LightGBM learns nothing from any custom objective, without saying so; leave it out",
    )
