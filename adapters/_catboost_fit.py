"""CatBoost: what a pool holds, and which training a copy of our objects is made for."""

import threading
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ltr_objectives.adapters._frames import calls_of
from ltr_objectives.adapters._libraries import CATBOOST
from ltr_objectives.errors import LTRError, require
from ltr_objectives.queries import sizes_of

MARK = np.float32(1 + 2**-23)  # the weight of a first row by which a pool has weights at all
MARKING = threading.Lock()


class Rows(NamedTuple):
    """The rows of a pool, as CatBoost hands them out: in float32."""

    labels: np.ndarray
    group: np.ndarray  # sizes
    weight: np.ndarray | None  # by row; None stands for ones
    baseline: np.ndarray | None

    def check_same(self, other: "Rows", given: str, found: str) -> None:
        """Raise unless ``other``, the pool ``found``, holds the same rows as this, the pool ``given``."""
        for name, ours, theirs in zip(self._fields, self, other, strict=True):
            same = ours is theirs if ours is None or theirs is None else np.array_equal(ours, theirs)
            require(same, f"{found} is not {given}: they differ in {name}; make the object from the pool it is used on")


def rows_of(pool: Any, name: str = "pool") -> Rows:
    """Read a ``catboost.Pool``."""
    catboost = CATBOOST.load()
    found = type(pool).__name__
    require(isinstance(pool, catboost.Pool), f"{name} must be a catboost.Pool(X, y, group_id=...), got {found}")
    require(pool.num_row() > 0 and pool.has_label(), f"{name} has no labels; make it with Pool(X, y, group_id=...)")
    ids = pool.get_group_id_hash()
    require(ids is not None and len(ids) > 0, f"{name} has no queries; make it with Pool(X, y, group_id=...)")
    try:
        given = np.asarray(pool.get_label())
        require(given.dtype.kind != "c", f"the labels of {name} must be real numbers")
        labels = given.astype(np.float32)
    except (TypeError, ValueError) as error:
        raise LTRError(f"the labels of {name} must be numbers: {error}") from None
    require(labels.ndim == 1, f"{name} must have one label a row, got shape {labels.shape}")
    weight = np.asarray(pool.get_weight(), np.float32)
    baseline = np.asarray(pool.get_baseline(), np.float32)
    require(baseline.size in (0, len(labels)), f"{name} must have one baseline a row, got shape {baseline.shape}")
    return Rows(
        labels,
        sizes_of(np.asarray(ids)),
        given_weight(weight),
        baseline.reshape(-1) if baseline.size else None,
    )


def given_weight(weight: np.ndarray | None) -> np.ndarray | None:
    """Weights as the user gave them: None where all are 1, marked or not."""
    return None if weight is None or ((weight == 1) | (weight == MARK)).all() else weight


def mark(pool: Any) -> None:
    """Have CatBoost keep weights for a pool that has none: 1, but for the smallest change in the first row."""
    with MARKING:
        weight = np.array(pool.get_weight(), np.float32)
        if (weight == 1).all():
            weight[0] = MARK
            pool.set_weight(weight)


class Fit(NamedTuple):
    """One call of ``fit``: its parameters, and the data it was given."""

    params: Mapping[str, Any]
    pool: Any
    eval_sets: tuple[Any, ...]
    init_model: Any

    def require_cpu(self) -> None:
        """Raise for ``task_type="GPU"``, which evaluates user-defined objects in other ways."""
        task = self.params.get("task_type") or "CPU"
        require(task == "CPU", f"task_type={task!r} is not supported by this adapter; leave it out, or set 'CPU'")

    def require_pool_order(self) -> None:
        """Raise for what makes CatBoost split or shuffle the rows: nothing tells where they went."""
        fraction = self.params.get("eval_fraction") or 0
        require(fraction == 0, f"eval_fraction={fraction!r} splits the pool; make two pools, and pass one as eval_set=")
        require(
            len(self.pool.get_cat_feature_indices()) == 0 or self.params.get("has_time") in (True, "true", "True"),
            "with categorical features CatBoost shuffles the rows; add has_time=True to CatBoost's parameters, which "
            "keeps the order of the pool",
        )
        boosting = self.params.get("boosting_type") or "Plain"
        require(boosting == "Plain", f"boosting_type={boosting!r} shuffles the rows; leave it out, or set 'Plain'")

    def require_plain_leaves(self) -> None:
        """Raise for leaf estimation with steps of its own, whose data are not those of the training."""
        backtracking = self.params.get("leaf_estimation_backtracking") or "No"
        require(
            backtracking == "No",
            f"leaf_estimation_backtracking={backtracking!r} is not supported by this adapter; leave it out or set 'No'",
        )
        leafwise = self.params.get("dev_leafwise_approxes") or False
        require(leafwise in (False, "false", "False"), "dev_leafwise_approxes is not supported; leave it out")

    def require_no_class_weights(self) -> None:
        """Raise for weights by class, which CatBoost would apply to some forms of labels and ignore for others."""
        for name in ("class_weights", "auto_class_weights"):
            value = self.params.get(name)
            none = value is None or str(value) == "None"
            require(none, f"{name}={value!r} is not supported; give the pool weights by row or by query")


def fit_under_way() -> Fit | None:
    """The ``fit`` that is copying its parameters right now, if that is who asks for a copy.

    CatBoost tells a user-defined object nothing about the training, but each ``fit`` starts by a deep copy of its
    parameters. Nobody but that call knows which pool is trained on: another pool may have equal labels.
    """
    calls = calls_of(CATBOOST)[:2]
    if [call.f_code.co_name for call in calls] != ["_prepare_train_params", "_fit"]:
        return None
    call = calls[0].f_locals
    eval_sets = call["eval_set"] if isinstance(call["eval_set"], list) else [call["eval_set"]]
    known = tuple(s for s in eval_sets if s is not None)
    return Fit(call["self"]._init_params or {}, call["X"], known, call["init_model"])


NOT_A_FIT = (
    "only a training started by fit(pool) is supported; cv, grid_search, randomized_search and others cut the pool "
    "into parts: make a pool for each part, and an object from that pool, and call fit"
)
