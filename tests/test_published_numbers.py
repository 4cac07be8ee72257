"""Tables and sentences of README and pages are computed again from the values that the repository has."""

import json
import re
import shlex

import examples
import numpy as np
import pandas as pd
import pytest
from commands import benchmark
from scipy import stats

from benchmarks import equivalence, publish
from benchmarks.figures import NATIVE
from benchmarks.publish import RESULTS, ROOT
from benchmarks.summary import POOLED
from ltr_objectives.statistics import holm

pytestmark = pytest.mark.skipif(not (ROOT / "README.md").exists(), reason="pages and results are in a clone only")
COMMANDS = {path.parent.name: json.loads(path.read_text())["command"] for path in sorted(RESULTS.glob("*/study.json"))}
SHIPPED = [name for name, command in COMMANDS.items() if re.search("report .*benchmarks/results/.*/|equival", command)]


@pytest.mark.parametrize("name", SHIPPED)
def test_the_command_below_a_table_gives_its_files_again(name, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    arguments = shlex.split(COMMANDS[name])[3:-1]
    benchmark(*arguments, tmp_path)
    assert (tmp_path / "summary.md").read_text() == (RESULTS / name / "summary.md").read_text()
    for path in (RESULTS / name).glob("*.csv"):
        pd.testing.assert_frame_equal(pd.read_csv(tmp_path / path.name), pd.read_csv(path), rtol=1e-9)


def lead(name):
    return pd.read_csv(RESULTS / name / "lead.csv").set_index(["data", "metric", "library"])


def with_error(difference, se):
    return f"{abs(difference):.4f} (standard error {se:.4f})", f"{abs(difference):.4f} ({se:.4f})"


def test_sentences_have_the_numbers_of_the_tables():
    pages = "README.md", "docs/results.md", "benchmarks/results/README.md"
    readme, results, tables = (re.sub(r"\s+", " ", (ROOT / page).read_text()) for page in pages)
    cells = pd.read_csv(RESULTS / "equivalence" / "equivalence.csv")
    passed = cells["equivalent_p"] < 0.05
    [miss] = cells[~passed].to_dict("records")
    assert (miss["metric"], miss["library"], len(cells)) == ("mrr", "catboost", 15)
    pair = lead("untuned_catboost").xs((POOLED, "catboost"), level=("data", "library"))
    mrr, err = pair.loc["mrr"], pair.loc["err"]
    raw = holm([2 * stats.norm.sf(abs(r["difference"]) / r["over_queries"]) for _, r in cells.iterrows()])
    of_err = cells.set_index(["metric", "library"]).loc[("err", "catboost")]
    alone = 2 * stats.norm.sf(abs(err["difference"] / err["se"]))
    held, both = lead("held_halves"), lead("homedepot_catboost")
    xgb = held.loc[(POOLED, "mrr", "xgboost")]
    queries = [lead(name)["queries"].max() for name in ("untuned", "untuned_catboost", "held_halves", "held_catboost")]
    counts = [f"{n:,}" for n in (*queries, both["queries"].max())]
    for text in (f"in {passed.sum()} of {len(cells)} cases", with_error(mrr["difference"], mrr["se"])[0],
                 with_error(err["difference"], err["se"])[1], with_error(xgb["difference"], xgb["se"])[1],
                 *counts[:3]):  # fmt: skip
        assert text in readme, text
    joined = [with_error(*both.loc[("product search", metric, "catboost"), ["difference", "se"]])[1]
              for metric in ("err", "mrr")]  # fmt: skip
    films = lead("untuned_catboost").loc[("MovieLens", "map", "catboost"), ["difference", "se"]]
    for text in (f"Of 15 comparisons {passed.sum()} are equivalent", f"at most by {miss['within']:.4f}",
                 f"p {alone:.3f}, and {min(raw):.3f} after Holm's correction over 15", f"trainings {of_err['p']:.3f})",
                 *joined, *counts):  # fmt: skip
        assert text in results, text
    assert with_error(*films)[1] in tables
    paper = re.sub(r"\s+", " ", (ROOT / "paper" / "paper.md").read_text())
    for text in (f"find {passed.sum()} of them equivalent", *counts[:3], with_error(err["difference"], err["se"])[1],
                 f"{-mrr['difference']:.4f} with a standard error of {mrr['se']:.4f}",
                 with_error(xgb["difference"], xgb["se"])[1]):  # fmt: skip
        assert text in paper, text
    ratings = [(lead(f"untuned{of}").loc[("MovieLens", "map", library)], library) for library, of in
               (("xgboost", ""), ("lightgbm", ""), ("catboost", "_catboost"))]  # fmt: skip
    line = " | ".join(f"{row['difference']:+.4f} ({row['se']:.4f})" for row, _ in ratings)
    assert f"| MovieLens (ml-100k, ml-small-2018) | {line} |" in results
    first = [lead("held_out").loc[("MovieLens-1M", "map", library)] for _, library in ratings]
    assert "{}, {} and {}.".format(*(f"{r['difference']:+.4f} ({r['se']:.4f})" for r in first)) in results
    table = lead("defaults").xs(POOLED)
    significant = table["p"] < 0.05
    z = table["difference"] / table["se"]
    assert ((z > 2).sum(), (z < -2).sum(), significant.sum(), len(table)) == (4, 1, 1, 15)
    one, other = table[significant].iloc[0], table.loc[("err", "catboost")]
    for row, key in ((one, ("ndcg@10", "lightgbm")), (other, ("err", "catboost"))):
        assert row.name == key
        assert with_error(row["difference"], row["se"])[1] in results
    for name, ahead, behind in (("untuned", 6, 0), ("untuned_catboost", 1, 2)):
        kinds = pd.read_csv(RESULTS / name / "lead.csv").query("data != @POOLED")
        z = kinds["difference"] / kinds["se"]
        assert ((z > 2).sum(), (z < -2).sum()) == (ahead, behind)


def test_no_other_objective_of_catboost_is_ahead():
    method, results = (
        re.sub(r"\s+", " ", page.read_text()) for page in (RESULTS / "README.md", ROOT / "docs/results.md")
    )
    each = pd.read_csv(RESULTS / "rivals_each" / "against.csv")
    assert (each["difference"] < 2 * each["se"]).all()
    assert each["objective"].nunique() == 8
    significant = each[each["p"] < 0.05]
    assert significant[["objective", "metric"]].to_numpy().tolist() == [
        ["PairLogitPairwise", metric] for metric in ("ndcg@10", "map", "err")
    ]
    chosen = lead("rivals").loc["MQ2008"]
    assert (chosen["difference"].abs() > 2 * chosen["se"]).tolist() == [True, False, False, False, False]
    assert (chosen["p"] > 0.05).all()
    assert with_error(*chosen.loc[("ndcg@10", "catboost"), ["difference", "se"]])[1] in method
    least = pd.read_csv(RESULTS / "rivals" / "letor" / "seconds.csv").set_index("objective")["least"]
    for name, text in (("YetiRank", "YetiRank"), *((n, f"`{n}`") for n in ("YetiRankPairwise", "PairLogitPairwise"))):
        assert f"{least[name]:.0f} s with {text}" in method
    for page in (method, results):
        assert f"{each['queries'].max()} " in page


def test_the_metric_s_own_yetiloss_is_level():
    method, own = (RESULTS / "README.md").read_text(), pd.read_csv(RESULTS / "itself" / "against.csv")
    assert (own["difference"].abs() < 2 * own["se"]).all()
    assert own["metric"].nunique() == 5
    assert f"None of {len(own)} differences from" in method
    assert f"{(own['difference'] < 0).sum()} are below zero" in method
    assert f"errors of {own['se'].min():.3f} to {own['se'].max():.3f} the set" in method


def test_the_front_page_has_the_numbers_of_other_pages():
    readme, goals = ((ROOT / page).read_text() for page in ("README.md", "docs/several_goals.md"))
    [shown] = re.findall(r"^dcg\(gain_type=linear\)@10 (.+)$", goals, re.MULTILINE)
    relevance = re.search(r"^ndcg@10 (\S+) (\S+) (\S+)$", goals, re.MULTILINE)
    assert "{} more revenue (95% interval: {} to {})".format(*re.findall(r"[\d.]+%", shown)) in readme
    assert "changed by {} ({} to {})".format(*relevance.groups()) in readme
    forms = pd.read_csv(RESULTS / "untuned" / "objectives.csv").query("data == @POOLED")
    forms = forms[forms["queries"] == forms["queries"].max()]  # tried on all data
    assert forms["objective"].nunique() == 4
    named = forms[forms["objective"] == "yetiloss:ndcg"].set_index("metric")["difference"]
    assert max(abs(forms["difference"] - forms["metric"].map(named))) < 0.001
    times = json.loads((RESULTS / "training.json").read_text())["results"]
    seconds = {(r["library"], r["objective"]): f"{np.median(r['seconds']):.1f}" for r in times}
    [alt] = re.findall(r"^!\[(Seconds.+)\]", readme, re.MULTILINE)
    native = [seconds[library, name] for library, names in NATIVE.items() for name in (*names, "yetiloss:ndcg")]
    assert re.findall(r"\d+\.\d", alt) == native


def test_the_share_of_trainings_is_that_of_the_studies_with_two_seeds():
    ratios = [(t["over_seeds"] / t["over_queries"]).mean() for t in map(pd.read_csv, RESULTS.glob("real/seeds_*.csv"))]
    assert max(ratios) == pytest.approx(equivalence.SPREAD, abs=0.005)


def test_two_one_sided_tests_and_the_random_effect():
    """Against an interval of 90%, and the weights of DerSimonian and Laird written out."""
    d, se = [0.004, -0.001, 0.002], [0.001, 0.0005, 0.002]
    table = pd.DataFrame({"data": ["a", "b", "c", POOLED], "metric": "map", "library": "xgboost", "queries": 9,
                          "difference": [*d, 0.001], "se": [*se, 0.0006]})  # fmt: skip
    [found] = equivalence.equivalences(table).to_dict("records")
    error = 0.0006 * np.sqrt(1 + equivalence.SPREAD**2)
    assert found["within"] == pytest.approx(max(map(abs, stats.norm.interval(0.9, 0.001, error))))
    assert found["equivalent_p"] == pytest.approx(stats.norm.sf(0.005, 0.001, error))
    assert found["p"] == pytest.approx(2 * stats.norm.sf(0.001, 0, error))
    variances = [(e / 0.0006 * error) ** 2 for e in se]
    w = [1 / v for v in variances]
    fixed = sum(a * b for a, b in zip(w, d, strict=True)) / sum(w)
    q = sum(a * (b - fixed) ** 2 for a, b in zip(w, d, strict=True))
    between = (q - 2) / (sum(w) - sum(a * a for a in w) / sum(w))
    again = [1 / (v + between) for v in variances]
    assert found["deviation"] == pytest.approx(between**0.5)
    assert found["random"] == pytest.approx(sum(a * b for a, b in zip(again, d, strict=True)) / sum(again))
    assert found["random_se"] == pytest.approx(sum(again) ** -0.5)
    single = equivalence.equivalences(table[:1].assign(difference=0.006)).iloc[0]
    assert single["within"] > equivalence.MARGIN
    assert single["equivalent_p"] > 0.5
    assert np.isnan(single["equal_p"])


def test_the_picture_of_a_trade_off_is_that_of_its_page(monkeypatch):
    page = ROOT / "docs" / "several_goals.md"
    examples.less_data(monkeypatch)
    [ax] = publish.front(publish.found_on("several_goals.md")).axes
    trainings = set(re.findall(r"^((?:may lose|weight) [\d.]+%?)", page.read_text(), re.M))
    assert len(trainings) > 6
    assert trainings < {text.get_text() for text in ax.texts}
