"""What our names give against the best native objective; settings and regularisation that mean the same for each."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from typer.testing import CliRunner

from benchmarks import cells, lead, pooled, quality
from benchmarks.__main__ import app
from benchmarks.libraries import LIBRARIES
from benchmarks.watch import DRAWS, NOISE, Watch, silent
from ltr_objectives import UnitHessian, evaluate, get_metric, get_objective
from ltr_objectives.adapters._libraries import LIBRARIES as FACTS
from ltr_objectives.workbench.trials import SHARED, Budget, drawn, in_documents
from ltr_objectives.datasets import make_ranking
from ltr_objectives.objectives.typical import typical
from ltr_objectives.queries import Queries


@pytest.fixture
def values():
    rng = np.random.default_rng(0)
    found = {}
    for data, n in (("MQ2008", 50), ("OHSUMED", 30), ("generated-calibrated 5,5,100", 100)):
        base = rng.random(n)
        shifts = {
            "lambdarank": 0.0,
            "rank_xendcg": 0.1,
            "yetiloss:gap": 0.15,
            "yetiloss:{metric}": 0.2,
            "queryrmse": 0.0,
        }
        for label, shift in shifts.items():
            for metric in ("map", "auc"):
                found[data, "lightgbm", label, metric] = base + shift + 0.05 * rng.standard_normal(n)
    return found


def test_what_our_names_give_stands_against_the_best_native_on_each_kind_of_data(values):
    table = lead.lead(values).set_index(["data", "metric"])
    row = table.loc[lead.REAL, "map"]
    ours, native, best = (
        np.concatenate([values[data, "lightgbm", label, "map"] for data in ("MQ2008", "OHSUMED")])
        for label in ("yetiloss:gap", "rank_xendcg", "yetiloss:{metric}")
    )
    assert (row["ours"], row["native"], row["best"], row["queries"]) == (
        "yetiloss:gap",
        "rank_xendcg",
        "yetiloss:map",
        80,
    )
    assert row["difference"] == pytest.approx((ours - native).mean())
    assert row["se"] == pytest.approx(stats.sem(ours - native))
    assert row["behind"] == pytest.approx((best - ours).mean())
    assert table.loc[(pooled.POOLED, "map"), "queries"] == 180
    assert table.loc[("generated data", "auc"), "ours"] == "yetiloss:auc"
    text = lead.markdown(table.reset_index())
    assert f"| map | lightgbm | yetiloss:gap | rank_xendcg | {1000 * row['difference']:+.1f}" in text


def test_studies_are_pooled_from_their_files(values, tmp_path):
    for name in ("MQ2008", "OHSUMED"):
        part = {key: v for key, v in values.items() if key[0] == name}
        (tmp_path / name).mkdir()
        pd.DataFrame(
            [
                {"data": d, "library": lib, "objective": o, "metric": m, "query": i, "value": x}
                for (d, lib, o, m), v in part.items() for i, x in enumerate(v)
            ]
        ).to_parquet(tmp_path / name / "queries.parquet")  # fmt: skip
    arguments = [
        "lead",
        "--study",
        str(tmp_path / "MQ2008"),
        "--study",
        str(tmp_path / "OHSUMED"),
        "--out",
        str(tmp_path),
    ]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert (tmp_path / "lead.png").stat().st_size > 10_000
    real = {key: v for key, v in values.items() if not key[0].startswith("generated")}
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "lead.csv"), lead.lead(real), check_dtype=False)


def test_only_metrics_of_the_study_are_smoothed(tmp_path):
    given = ["quality", "--metrics", "map", "--smooth", "mrr", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, given)
    assert done.exit_code == 2
    assert "smooth='mrr' is not known; choose one of 'map'" in done.output
    assert not (tmp_path / "out").exists()


def test_every_objective_gets_the_same_settings():
    at = [cells.Fold("generated 6,4,4", "6,4,4", 0)]
    budgets = [Budget(**settings) for settings in drawn(3)]
    planned = quality.plan(at, ["lightgbm"], ["rmse"], ["lambdarank"], ["map"], budgets)[1:]
    by_label = {label: [c.budget for c in planned if c.label == label] for label in ("rmse", "lambdarank")}
    assert by_label["rmse"] == by_label["lambdarank"] == budgets
    for settings in drawn(50):
        assert all(low <= settings[name] <= high for name, (low, high) in SHARED.items())


def test_documents_are_hessians_of_the_native_objective():
    fold = cells.Fold("generated 30,5,5", "30,5,5", 0)
    queries = Queries(fold.load().train.y, fold.load().train.group)
    budget = Budget(documents=50.0, min_child_weight=2.0)
    for library, kind in LIBRARIES.items():
        for native in kind.usual:
            found = in_documents(library, budget, native, queries)
            twin = FACTS[library].twins.get(native)
            unit = typical(get_objective(twin), queries).hessian if twin else 1.0
            assert (found.l2, found.min_child_weight) == pytest.approx((50 * unit, 2 * unit))
        ours = cells.Cell(fold, library, "lambdamart", "lambdamart", ("map",), budget)
        assert cells.objective_of(ours) == UnitHessian("lambdamart")
        assert in_documents(library, budget, cells.objective_of(ours), queries).l2 == 50


@pytest.mark.parametrize(("library", "native"), [(name, n) for name, kind in FACTS.items() for n in kind.twins])
def test_twins_have_the_hessians_of_native_objectives(library, native):
    module, data = pytest.importorskip(library), make_ranking(60, mean_length=20, features=10)
    labels = (data.y > 0).astype(float) if native == "rank:map" else data.y
    if library == "xgboost":
        params = {"objective": native, "max_depth": 1, "min_child_weight": 0, "base_score": 0}
        booster = module.train(params, module.DMatrix(data.X, labels, group=data.group), 1)
        total = booster.trees_to_dataframe()["Cover"][0]
    else:
        params = {"objective": native, "num_leaves": 2, "min_sum_hessian_in_leaf": 0, "verbose": -1}
        tree = module.train(params, module.Dataset(data.X, labels, group=data.group), 1).trees_to_dataframe()
        total = tree["weight"][tree["left_child"].isna()].sum()
    twin = get_objective(FACTS[library].twins[native])
    _, hess = twin.gradient_hessian(np.zeros(len(labels)), labels, data.group)
    assert total == pytest.approx(hess.sum(), rel=1e-5)


def test_a_smoothed_metric_is_the_mean_over_noisy_scores():
    vali = make_ranking(20, seed=1)
    watch = Watch([get_metric("mrr"), get_metric("map")], vali, silent, 1, smooth=("mrr",))
    scores, queries = np.random.default_rng(0).standard_normal(len(vali.y)), Queries(vali.y, vali.group)
    watch.mean(queries, scores)
    noise = np.random.default_rng(0).standard_normal((DRAWS, len(vali.y))) * NOISE * scores.std()
    noisy = [evaluate("mrr", scores + each, vali.y, vali.group) for each in noise]
    assert watch.curves["mrr"][0] == pytest.approx(np.mean(noisy))
    assert watch.curves["map"][0] == evaluate("map", scores, vali.y, vali.group)
