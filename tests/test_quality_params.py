"""A study tries parameters of the libraries, and vali chooses."""

import pytest

from benchmarks import cells, pooled, quality, report
from ltr_objectives import LTRError
from ltr_objectives.workbench.trials import Budget


def test_parameters_of_a_library_are_tried_in_all_combinations_and_reach_it():
    at = [cells.Fold("generated 6,4,4", "6,4,4", 0)]
    budget = Budget(2, 0.1, 7, 2, 1e-3, 0.0, 1, 0)
    asked = at, ["lightgbm", "xgboost"], ["rmse"], ["none"], ["map"], [budget], 0
    tried = ["lightgbm:bagging_freq=1", "lightgbm:bagging_fraction=.5,1", "xgboost:booster=gbtree"]
    planned = quality.plan(*asked, tried)
    assert [(c.library, c.budget.params) for c in planned[1:]] == [
        ("lightgbm", (("bagging_fraction", 0.5), ("bagging_freq", 1))),
        ("lightgbm", (("bagging_fraction", 1), ("bagging_freq", 1))),
        ("xgboost", (("booster", "gbtree"),)),
    ]
    values = [cells.run(cell, None)["curves"]["map"] for cell in planned[1:3]]
    assert values[0] != values[1]


def test_what_vali_chose_is_told():
    one = {"fold": ["set", "Fold1", 0], "library": "xgboost", "label": "a", "seconds": 1.0, "trees": {"map": 3},
           "train": {"map": 0.9}}  # fmt: skip
    tried = [
        one | {"test": {"map": [value]}, "vali": {"map": vali}, "budget": {"learning_rate": 0.1, "params": params}}
        for params, vali, value in (((("subsample", 0.5),), 0.6, 0.2), ((("subsample", 1),), 0.5, 0.3))
    ]
    frame = pooled.chosen(tried)
    assert report.on_vali(frame)[["params", "vali"]].to_numpy().tolist() == [["subsample=0.5", 0.6]]
    del tried[0]["budget"]["params"]  # as of studies without any
    assert report.on_vali(pooled.chosen(tried[:1])).empty


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (["subsample=1"], "must look like"),
        (["catboost:depth=3"], "catboost is not in --libraries"),
        (["xgboost:subsample=1", "xgboost:subsample=.5"], "subsample is given twice"),
        (["xgboost:eta=.5"], "the study sets eta itself"),
        (["lightgbm:baging_fraction=.5"], "did you mean 'bagging_fraction'"),
        (["xgboost:interaction_constraints=[]"], "values must be numbers"),
    ],
)
def test_parameters_that_cannot_be_tried_are_refused(wrong, message):
    at = [cells.Fold("generated 6,4,4", "6,4,4", 0)]
    with pytest.raises(LTRError, match=message):
        quality.plan(at, ["lightgbm", "xgboost"], ["rmse"], ["none"], ["map"], [Budget()], 0, wrong)
