"""Paired tests over queries, with weights too; marks only for what is significant; the best native is the reference."""

import numpy as np
import pytest

stats = pytest.importorskip("scipy.stats")

from ltr_objectives import statistics  # noqa: E402 - as above
from ltr_objectives.statistics import mean, paired_p, rank, standard_error  # noqa: E402 - as above

RNG = np.random.default_rng(0)
A, B, WEIGHT = RNG.random(40), RNG.random(40), RNG.uniform(0.1, 4, 40)


def test_equal_weights_are_as_none():
    gaps = A.copy()
    gaps[::7] = np.nan
    for a in (A, gaps):
        same, kept = np.full(40, 2.5), ~np.isnan(a)
        assert mean(a, same) == pytest.approx(mean(a))
        assert standard_error(a, same) == pytest.approx(standard_error(a))
        assert standard_error(a) == pytest.approx(stats.sem(a[kept]))
        assert paired_p(a, B, same) == pytest.approx(paired_p(a, B))
        assert paired_p(a, B) == pytest.approx(stats.ttest_rel(a[kept], B[kept]).pvalue)


def test_weights_give_the_robust_error_of_a_regression_on_a_constant():
    """HC2 by its matrices, with the residuals of a weighted regression and their leverages."""
    root = np.sqrt(WEIGHT)
    one, d = root[:, None], root * (A - B)
    bread = np.linalg.inv(one.T @ one)
    fit, leverage = bread @ one.T @ d, np.diag(one @ bread @ one.T)
    error = np.sqrt((bread @ one.T @ np.diag((d - root * fit[0]) ** 2 / (1 - leverage)) @ one @ bread)[0, 0])
    freedom = WEIGHT.sum() ** 2 / (WEIGHT**2).sum() - 1
    found = rank({"a": A, "b": B}, WEIGHT, "b")[0]
    assert found.difference == pytest.approx(fit[0])
    assert found.difference_se == pytest.approx(error)
    assert found.p == pytest.approx(2 * stats.t.sf(abs(fit[0]) / error, freedom))
    some = WEIGHT * (np.arange(40) % 3 > 0)
    kept = some > 0
    assert standard_error(A, some) == pytest.approx(standard_error(A[kept], some[kept]))
    assert paired_p(A, B, some) == pytest.approx(paired_p(A[kept], B[kept], some[kept]))


WEIGHTS = {
    "none": lambda rng, n: None,
    "lognormal": lambda rng, n: np.exp(rng.normal(0, 1, n)),
    "wide": lambda rng, n: np.exp(rng.normal(0, 2, n)),
    "queries of users": lambda rng, n: np.floor(rng.pareto(1.0, n) + 1),
}
SPREADS = {"alike": lambda w: 1, "of many": lambda w: w**0.5, "of means": lambda w: w**-0.5}


@pytest.mark.parametrize("kind", WEIGHTS)
@pytest.mark.parametrize("n", [10, 30, 200])
def test_differences_by_chance_are_rejected_at_the_level(kind, n):
    """At 0.05, 0.09 in 1,000 simulations is 6 standard errors above; with the deviation of a query by its weight."""
    rng = np.random.default_rng(n)
    for spread in SPREADS.values() if kind != "none" else [lambda w: 1]:
        rejected = 0
        for _ in range(1000):
            w = WEIGHTS[kind](rng, n)
            d = rng.normal(size=n) * spread(w)
            rejected += paired_p(d, np.zeros(n), w) < 0.05
        assert rejected / 1000 < 0.09


def test_degenerate_differences():
    a = np.array([0.5, np.nan, 0.25, 1.0])
    assert paired_p(a, a) == 1.0
    assert paired_p(a + 0.25, a) == 0.0
    assert paired_p(a[:1] + 1, a[:1]) == paired_p(a, np.array([0.5, 1.0, np.nan, 1.0])) == 1.0
    assert np.isnan(standard_error(A[:1]))
    assert np.isnan(standard_error(A, (np.arange(40) == 3).astype(float)))


def test_holm_by_hand():
    assert statistics.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert statistics.holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])


def test_marks_tell_better_worse_and_chance():
    rng = np.random.default_rng(1)
    reference = rng.random(200)
    models = {str(shift): reference + shift + 0.1 * rng.standard_normal(200) for shift in (0.1, -0.1, 0.0)}
    found = rank({**models, "reference": reference}, reference="reference")[:3]
    marks = [statistics.mark(row.difference, row.p, 0.05) for row in found]
    assert marks == [statistics.BETTER, statistics.WORSE, statistics.SAME]
    assert statistics.mark(1.0, np.nan, 0.05) == statistics.SAME


def test_the_others_are_tested_against_the_reference_or_the_best_native_objective():
    rng = np.random.default_rng(0)
    base = rng.random(100)
    values = {"rank_xendcg": base - 0.2 * rng.random(100), "lambdarank": base,
              "ours": base + 0.05 + 0.1 * rng.standard_normal(100)}  # fmt: skip
    rows = {row.objective: row for row in rank(values, natives=["rank_xendcg", "lambdarank"])}
    ours, d = rows["ours"], values["ours"] - base
    assert ours.reference == "lambdarank"
    assert (ours.difference, ours.difference_se) == pytest.approx((d.mean(), d.std(ddof=1) / 10))
    assert ours.p == pytest.approx(stats.ttest_rel(d, np.zeros(100)).pvalue)
    assert {name: row.native for name, row in rows.items()} == {"rank_xendcg": True, "lambdarank": True, "ours": False}
    assert rows["lambdarank"].reference is None
    assert np.isnan(rows["lambdarank"].p)
    assert {row.reference for row in rank(values, reference="ours", natives=["lambdarank"])} == {"ours", None}
    assert {row.reference for row in rank(values, reference="none of them")} == {None}
