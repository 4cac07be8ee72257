"""Training in each library, of native objectives and ours, with the same budget and the same early stopping.

To add a library, write its class and its line in ``LIBRARIES``.
"""

import abc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from benchmarks.watch import Report, Watch, silent
from ltr_objectives import adapters
from ltr_objectives.adapters._libraries import LIBRARIES as FACTS
from ltr_objectives.workbench.trials import Budget, params_of
from ltr_objectives.datasets import RankingData, RankingFold
from ltr_objectives.errors import LTRError
from ltr_objectives.metrics.base import Metric
from ltr_objectives.objectives.base import Objective
from ltr_objectives.queries import Queries

Predict = Callable[[np.ndarray, int], Any]  # features and a number of trees to scores


@dataclass(frozen=True)
class Training:
    """A finished training."""

    predict: Predict
    curves: dict[str, list[float]]  # vali metrics by name and iteration
    seconds: float
    patience: int

    def best(self, metric: str) -> int:
        """The best number of trees if early stopping watched this metric alone; the first of ties."""
        curve = self.curves[metric]
        best = 0
        for i, value in enumerate(curve):
            if value > curve[best]:
                best = i
            if i - best >= self.patience:
                break
        return best + 1

    def scores(self, part: RankingData, metric: str) -> np.ndarray:
        """Predictions for a part with the best number of trees."""
        return np.asarray(self.predict(part.X, self.best(metric)), np.float64)


class Library(abc.ABC):
    """A library with its data sets prepared once, so that times are of training alone."""

    name: ClassVar[str]
    usual: ClassVar[tuple[str, ...]]  # the default; the first is the reference
    with_ours: ClassVar[Mapping[str, Any]] = {}  # parameters for our objectives only; those of the study override them
    budget: Budget
    params: Mapping[str, Any]  # by the library's own names; they override those of the budget

    def __init__(self, fold: RankingFold, metrics: Sequence[Metric], budget: Budget, *, tuned: bool = False) -> None:
        assert fold.vali is not None
        self.train_data, self.vali_data = fold.train, fold.vali
        self.metrics, self.budget, self.params, self.tuned = tuple(metrics), budget, {}, tuned
        self.train_queries = Queries(fold.train.y, fold.train.group)
        self.prepare()

    def run(self, objective: str | Objective, report: Report = silent) -> Training:
        """Train until no metric improves; a string is a native objective."""
        watch = Watch(self.metrics, self.vali_data, report, self.budget.threads, self.budget.smooth)
        start = time.perf_counter()
        try:
            predict = self.train(objective, watch)
        except LTRError:
            raise
        except Exception as error:  # each library has its own exceptions
            name = objective if isinstance(objective, str) else f"our {objective.name}"
            raise LTRError(f"{self.name} could not train {name}: {error}") from error
        return Training(predict, watch.curves, time.perf_counter() - start, self.budget.patience)

    @classmethod
    def knows(cls, native: str) -> bool:
        """Whether there is a native objective of this name."""
        return FACTS[cls.name].knows(native)

    @classmethod
    def spelled(cls, metric: str) -> str:
        """A metric as it is spelled in the names of the library's own objectives."""
        return FACTS[cls.name].spelled(metric)

    @abc.abstractmethod
    def prepare(self) -> None:
        """Make the library's data sets."""

    @abc.abstractmethod
    def train(self, objective: str | Objective, watch: Watch) -> Predict:
        """Train, stopping early on ``watch``."""


class XGBoost(Library):
    name = "xgboost"
    usual = ("rank:ndcg", "rank:map")

    def prepare(self) -> None:
        import xgboost as xgb

        train, vali = self.train_data, self.vali_data  # by group, since qid= would have to ascend
        self.dtrain = xgb.QuantileDMatrix(train.X, train.y, group=train.group)
        self.dvali = xgb.QuantileDMatrix(vali.X, vali.y, group=vali.group, ref=self.dtrain)

    def train(self, objective: str | Objective, watch: Watch) -> Predict:
        import xgboost as xgb

        b = self.budget
        params: dict[str, Any] = {
            "disable_default_eval_metric": 1, "verbosity": 0,
            **params_of(self.name, b), **dict(b.params), **self.params,
        }  # fmt: skip
        native = isinstance(objective, str)
        if native:
            params["objective"] = objective
        if objective in FACTS[self.name].binary:
            self.dtrain.set_label((self.train_data.y > 0).astype(np.float32))
        try:
            booster = xgb.train(
                params, self.dtrain, num_boost_round=b.trees, evals=[(self.dvali, "vali")], verbose_eval=False,
                obj=None if native else adapters.xgboost_objective(objective, n_threads=b.threads),
                custom_metric=adapters.xgboost_metric(watch), early_stopping_rounds=b.patience,
            )  # fmt: skip
        finally:
            self.dtrain.set_label(self.train_data.y)
        return lambda X, trees: booster.inplace_predict(X, iteration_range=(0, trees))


class LightGBM(Library):
    name = "lightgbm"
    usual = ("lambdarank", "rank_xendcg")

    def prepare(self) -> None:
        import lightgbm as lgb

        train, vali = self.train_data, self.vali_data
        params = {"verbose": -1, "force_col_wise": True}
        if self.tuned:  # else min_data_in_leaf of the first training would bind the others
            params["feature_pre_filter"] = False
        self.dtrain = lgb.Dataset(train.X, train.y, group=train.group, free_raw_data=False, params=params)
        same = dict(params) if self.tuned else None
        self.dvali = lgb.Dataset(
            vali.X, vali.y, group=vali.group, free_raw_data=False, reference=self.dtrain, params=same
        )
        self.dvali.construct()

    def train(self, objective: str | Objective, watch: Watch) -> Predict:
        import lightgbm as lgb

        b = self.budget
        native = isinstance(objective, str)
        params = {
            "objective": objective if native else adapters.lightgbm_objective(objective, n_threads=b.threads),
            "metric": "None", "verbose": -1, **params_of(self.name, b), **dict(b.params), **self.params,
        }  # fmt: skip
        booster = lgb.train(
            params, self.dtrain, b.trees, valid_sets=[self.dvali], valid_names=["vali"],
            feval=adapters.lightgbm_metric(watch), callbacks=[lgb.early_stopping(b.patience, verbose=False)],
        )  # fmt: skip
        return lambda X, trees: booster.predict(X, num_iteration=trees, num_threads=b.threads)


class CatBoost(Library):
    name = "catboost"
    usual = ("YetiRank", "YetiRank:mode=NDCG;top=10")
    with_ours: ClassVar[Mapping[str, Any]] = {  # the defaults of CatBoostRanker
        "leaf_estimation_method": "Newton", "leaf_estimation_iterations": 1, "random_strength": 0,
    }  # fmt: skip

    def prepare(self) -> None:
        import catboost

        parts = self.train_data, self.train_data, self.vali_data
        self.dtrain, self.dtrain_ours, self.dvali = (  # two, since ours gives its pool weights, for the splits
            catboost.Pool(part.X, part.y, group_id=part.qid) for part in parts
        )

    def train(self, objective: str | Objective, watch: Watch) -> Predict:
        import catboost

        b, dtrain = self.budget, self.dtrain if isinstance(objective, str) else self.dtrain_ours
        params: dict[str, Any] = {
            "eval_metric": adapters.catboost_metric(watch, dtrain, self.dvali),
            "iterations": b.trees, **params_of(self.name, b), "od_type": "Iter", "od_wait": b.patience,
            "use_best_model": False, "allow_writing_files": False, "verbose": False, **dict(b.params), **self.params,
        }  # fmt: skip
        newton_splits = params.pop("newton_splits", True)
        if isinstance(objective, str):
            params["loss_function"] = objective
        else:
            params["loss_function"] = adapters.catboost_objective(
                objective, dtrain, n_threads=b.threads, newton_splits=newton_splits
            )
            params = {**self.with_ours, **params}
        model = catboost.CatBoost(params).fit(dtrain, eval_set=self.dvali)
        return lambda X, trees: model.predict(X, ntree_end=trees, thread_count=b.threads)


LIBRARIES: dict[str, type[Library]] = {library.name: library for library in (XGBoost, LightGBM, CatBoost)}
