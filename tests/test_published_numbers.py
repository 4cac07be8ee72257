"""Tables and sentences of README and pages are computed again from the values that the repository has."""

import json
import re
import shlex

import numpy as np
import pandas as pd
import pytest
from commands import benchmark
from loading import read_toml
from scipy import stats

from benchmarks import equivalence, publish
from benchmarks.figures import NATIVE
from benchmarks.publish import RESULTS, ROOT
from benchmarks.summary import POOLED
from ltr_objectives import YetiLoss
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
    ahead, behind = cells[~passed].to_dict("records")
    assert [(miss["metric"], miss["library"]) for miss in (ahead, behind)] == [("mrr", "xgboost"), ("mrr", "catboost")]
    of = cells.set_index(["metric", "library"])
    err = of.loc[("err", "catboost")]
    z = of["difference"] / of["over_queries"]
    assert z.index[z > 2].tolist() == [("mrr", "xgboost"), ("precision@5", "lightgbm")]
    assert z.index[z < -2].tolist() == [("err", "catboost")]
    raw = holm(list(2 * stats.norm.sf(z.abs())))
    others = pd.read_csv(RESULTS / "held_equivalence" / "equivalence.csv")
    assert (others["difference"].abs() < 2 * others["over_queries"]).all()
    held, both = lead("held_halves").loc[(POOLED, "mrr", "xgboost")], lead("homedepot_catboost")
    queries = [lead(name)["queries"].max() for name in ("untuned", "untuned_catboost", "held_halves", "held_catboost")]
    counts = [f"{n:,}" for n in (*queries, both["queries"].max())]
    equivalent = [f"{(c['equivalent_p'] < 0.05).sum()} of {len(c)}" for c in (cells, others)]
    on_others = f"On {counts[2]} others (CatBoost: {counts[3]}) {equivalent[1]} were equivalent too"
    for text in (f"{equivalent[0]} comparisons with", on_others,
                 with_error(ahead["difference"], ahead["se"])[0], with_error(behind["difference"], behind["se"])[1],
                 with_error(err["difference"], err["se"])[1], *counts[:2]):  # fmt: skip
        assert text in readme, text
    joined = [with_error(*both.loc[("product search", metric, "catboost"), ["difference", "se"]])[1]
              for metric in ("err", "mrr")]  # fmt: skip
    assert (both["p"] > 0.05).all()
    shop = lead("untuned_catboost").loc["product search"]
    assert sorted(shop.index[shop["p"] < 0.05].get_level_values("metric")) == ["err", "mrr"]
    behind_there = [with_error(*shop.loc[(metric, "catboost"), ["difference", "se"]])[1] for metric in ("mrr", "err")]
    assert f"MRR is behind by {behind_there[0]} and ERR by {behind_there[1]}, significantly" in results
    films = lead("untuned_catboost").loc[("MovieLens", "map", "catboost"), ["difference", "se"]]
    far = others[others["equivalent_p"] > 0.05].set_index(["metric", "library"])["within"]
    assert far.index.tolist() == [("mrr", "lightgbm"), ("mrr", "catboost")]
    misses = [f"at most by {miss['within']:.4f}" for miss in (ahead, behind)]
    for text in (f"Of 15 comparisons {passed.sum()} are equivalent", *misses, *counts[:-1],
                 with_error(err["difference"], err["over_queries"])[0], f"[{equivalent[1]} comparisons are equivalent]",
                 f"over 15 is {min(raw):.3f}, and with the variation between trainings {cells['p'].min():.3f}",
                 *(f"up to {within:.4f}" for within in far)):  # fmt: skip
        assert text in results, text
    once = pd.read_csv(RESULTS / "candidates" / "held.csv").set_index(["data", "metric", "library"])
    before = once.loc[(POOLED, "mrr", "xgboost"), ["difference", "se"]]
    for text in (*joined, counts[-1], with_error(*films)[1], *misses, f"behind by {with_error(*before)[1]}",
                 f"ahead by {with_error(held['difference'], held['se'])[1]}"):  # fmt: skip
        assert text in tables, text
    paper = re.sub(r"\s+", " ", (ROOT / "paper" / "paper.md").read_text())
    for text in (f"find {passed.sum()} of them equivalent", *counts[:3], with_error(err["difference"], err["se"])[1],
                 f"{ahead['difference']:.4f} with a standard error of {ahead['se']:.4f}",
                 with_error(behind["difference"], behind["se"])[1], f"{equivalent[1]} comparisons"):  # fmt: skip
        assert text in paper, text
    ratings = [(lead(f"untuned{of}").loc[("MovieLens", "map", library)], library) for library, of in
               (("xgboost", ""), ("lightgbm", ""), ("catboost", "_catboost"))]  # fmt: skip
    line = " | ".join(f"{row['difference']:+.4f} ({row['se']:.4f})" for row, _ in ratings)
    assert f"| MovieLens (ml-100k, ml-small-2018) | {line} |" in tables
    first = [lead("held_out").loc[("MovieLens-1M", "map", library)] for _, library in ratings]
    assert "{}, {} and {}.".format(*(f"{r['difference']:+.4f} ({r['se']:.4f})" for r in first)) in tables
    table = lead("defaults").xs(POOLED)
    significant = table["p"] < 0.05
    z = table["difference"] / table["se"]
    assert ((z > 2).sum(), (z < -2).sum(), significant.sum(), len(table)) == (4, 1, 1, 15)
    one, other = table[significant].iloc[0], table.loc[("err", "catboost")]
    for row, key in ((one, ("ndcg@10", "lightgbm")), (other, ("err", "catboost"))):
        assert row.name == key
        assert with_error(row["difference"], row["se"])[1] in tables
    for name, *beyond in (("untuned", 7, 1), ("untuned_catboost", 1, 2), ("candidates", 6, 0)):
        kinds = pd.read_csv(RESULTS / name / "lead.csv").query("data != @POOLED")
        z = kinds["difference"] / kinds["se"]
        assert [(z > 2).sum(), (z < -2).sum()] == beyond


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
    more = pd.read_csv(RESULTS / "rivals_untuned" / "against.csv")
    assert f"None of {len(more)} differences is above zero by two standard errors" in method
    assert (more["difference"] < 2 * more["se"]).all()
    behind = more.loc[more["p"] < 0.05, ["part", "objective", "metric"]]
    assert behind.to_numpy().tolist() == [["question answering", "PairLogit", "map"]]
    chosen = lead("rivals").loc["MQ2008"]
    assert (chosen["difference"].abs() > 2 * chosen["se"]).tolist() == [True, False, False, False, False]
    assert (chosen["p"] > 0.05).all()
    assert with_error(*chosen.loc[("ndcg@10", "catboost"), ["difference", "se"]])[1] in method
    least = pd.read_csv(RESULTS / "rivals" / "letor" / "seconds.csv").set_index("objective")["least"]
    for name, text in (("YetiRank", "YetiRank"), *((n, f"`{n}`") for n in ("YetiRankPairwise", "PairLogitPairwise"))):
        assert f"{least[name]:.0f} s with {text}" in method
    for page in (method, results):
        assert f"{each['queries'].max()} " in page


def test_catboost_is_level_on_retrieval():
    method, results = (re.sub(r"\s+", " ", (ROOT / name).read_text()) for name in
                       ("benchmarks/results/README.md", "docs/results.md"))  # fmt: skip
    found = lead("retrieval_catboost").loc["retrieval"]
    z = found["difference"] / found["se"]
    assert ((z < 0).all(), (z > -1).all(), len(z)) == (True, True, 5)
    ndcg = found.loc[("ndcg@10", "catboost")]
    low, _ = stats.norm.interval(0.9, ndcg["difference"], ndcg["se"])
    assert f"behind by up to {-low:.4f} (90% interval)" in method
    assert f"{ndcg['queries']:,.0f} queries of NFCorpus" in results


def test_the_metric_s_own_yetiloss_is_level():
    method, own = (RESULTS / "README.md").read_text(), pd.read_csv(RESULTS / "itself" / "against.csv")
    assert (own["difference"].abs() < 2 * own["se"]).all()
    assert own["metric"].nunique() == 5
    assert f"None of {len(own)} differences from" in method
    assert f"{(own['difference'] < 0).sum()} are below zero" in method
    assert f"errors of {own['se'].min():.3f} to {own['se'].max():.3f} the set" in method
    more = pd.read_csv(RESULTS / "itself_untuned" / "against.csv")
    z = more["difference"] / more["se"]
    assert (more["p"] > 0.05).all()
    assert (z < 2).all()
    assert f"None of {len(more)} differences is significant" in method
    assert f"; {(z < -2).sum()} are below zero by two standard errors" in method
    assert f"in none of {len(own) + len(more)} comparisons" in (ROOT / "docs" / "results.md").read_text()


def test_the_front_page_has_the_numbers_of_other_pages():
    readme, goals = ((ROOT / page).read_text() for page in ("README.md", "docs/several_goals.md"))
    change, revenue = re.search(r"^weight 1 +(\S+) +\S+ +\S+ +(\S+)", goals, re.MULTILINE).groups()
    falls = f"revenue rises by up to {100 * float(revenue):.0f}%, where NDCG falls by {-100 * float(change):.0f}%]"
    assert falls in readme
    assert falls in goals
    forms = pd.read_csv(RESULTS / "candidates" / "objectives.csv").query("data == @POOLED")
    forms = forms[forms["queries"] == forms["queries"].max()]  # tried on all data
    assert forms["objective"].nunique() == 4
    named = forms[forms["objective"] == "yetiloss:ndcg"].set_index("metric")["difference"]
    assert max(abs(forms["difference"] - forms["metric"].map(named))) < 0.001
    times = json.loads((RESULTS / "training.json").read_text())["results"]
    seconds = {(r["library"], r["objective"]): f"{np.median(r['seconds']):.1f}" for r in times}
    [alt] = re.findall(r"^!\[(Seconds.+)\]", readme, re.MULTILINE)
    native = [seconds[library, name] for library, names in NATIVE.items() for name in (*names, "yetiloss:ndcg")]
    assert re.findall(r"\d+\.\d", alt) == native


def test_the_page_of_goals_has_the_money_of_its_table():
    goals = (ROOT / "docs" / "several_goals.md").read_text()
    results = pd.DataFrame(json.loads((RESULTS / "money.json").read_text())["results"])
    realised = results[results["labels"] == "realised"]
    for trained in ("dcg of money", "chance of an order, times the margin", "orders, weight: the session's money"):
        percent = realised.loc[realised["trained"] == trained, "percent"]
        assert f" {percent.min():.0f} to {percent.max():.0f}%" in goals, trained


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


def page(name):
    return re.sub(r"\s+", " ", (ROOT / name).read_text())


def values(name):
    return json.loads((RESULTS / f"{name}.json").read_text())


def span(numbers, digits=0):
    return f"{min(numbers):.{digits}f} to {max(numbers):.{digits}f}"


def contains(text, *sentences):
    for sentence in sentences:
        assert sentence in text, sentence


def test_numbers_of_the_picture_of_levels():
    found = publish.pooled(RESULTS).assign(z=lambda t: t["difference"] / t["se"])
    study, held = (1000 * of["difference"] for _, of in found.groupby("data", sort=False))
    beyond = found[found["z"].abs() > 1.96]
    assert (len(beyond), (beyond["z"] > 0).sum()) == (3, 2)
    spans = [f"between {of.min():+.1f} and {of.max():+.1f}" for of in (study, held)]
    contains(page("docs/results.md"), f"{spans[0]}, those of held-out queries {spans[1]}",
             "three intervals exclude 0, two of them on our side")  # fmt: skip
    [bags] = [r for r in values("bags_insuranceqa")["results"] if "bags" in r["model"] and r["metric"] == "ndcg@10"]
    assert 0 < bags["difference"] < 2 * bags["se"]
    contains(page("benchmarks/results/README.md"), f"{bags['difference']:.4f} more")


def test_numbers_about_clicks():
    cells = {(r[0], r[1]): [re.fullmatch(r"(\S+) \((\S+)\), \w+ (\S+)", cell).groups() for cell in r[2:]]
             for r in publish.clicks(values("clicks"))[1:]}  # fmt: skip
    late = {key: np.array(of[1][:2], float) for key, of in cells.items()}  # after 100 rounds: mean and error
    lightgbm, xgboost = (("lightgbm", "its own"), ("xgboost", "its own"))
    worlds = len({r["world"] for r in values("clicks")["results"]})
    contains(page("README.md"), f"{worlds} simulated worlds",
             "{:.3f} (standard error {:.3f}) above LightGBM's own".format(*late[lightgbm] / 1000),
             "{:.3f} ({:.3f}) above XGBoost's".format(*late[xgboost] / 1000),
             "{:.3f} ({:.3f}) above no correction".format(*late["catboost", "none"] / 1000))  # fmt: skip
    none = [of[0] for key, of in late.items() if key[1] == "none" or key == xgboost]
    others = [of[0] for key, of in late.items() if "feature" in key[1] or key == lightgbm]
    truth, error = late["lightgbm", "true propensities"]
    assert abs(truth) < 1.96 * error
    worst = [-int(of[1][2]) for key, of in cells.items() if key[1] == "none"]
    contains(page("docs/position_bias.md"), f"{worlds} simulated worlds",
             *(f"{span(np.array(of, float) / 1000, 3)} over" for of in (none, others)),
             f"{truth / 1000:.3f}, with an interval", f"better by {span(np.array(worst) / 1000, 3)}]")  # fmt: skip
    clicks, likelihood = zip(*(map(int, r[1:]) for r in publish.clicks_criteria(values("clicks"))[1:]), strict=True)
    contains(page("docs/position_bias.md"), f"{span(likelihood)}%", f"{span(clicks)}%")
    gains = {key: [float(of[0]) / 1000 for of in cells[key]]
             for key in (lightgbm, xgboost, ("catboost", "position as a feature"))}  # fmt: skip
    worst = [-int(one[2]) / 1000 for key, of in cells.items() if key[1] == "none" for one in of]
    contains(page("benchmarks/results/README.md"), f"by {span(gains.pop(lightgbm), 3)}, in XGBoost by "
             f"{span(gains.pop(xgboost), 3)}, in CatBoost of the feature by {span(*gains.values(), 3)}",
             f"no correction was better by {span(worst, 3)}")  # fmt: skip


def test_numbers_about_bounds():
    method, goals, readme = map(page, ("benchmarks/results/README.md", "docs/several_goals.md", "README.md"))
    found = pd.read_csv(RESULTS / "bounds" / "verdicts.csv")
    kept = found[["kept_vali", "kept_test", "on_front"]]
    for loss, of in found.groupby("loss"):
        counts = of[kept.columns].sum()
        means = (100 * of[["test_first", "test_second", "front"]].mean()).map("{:+.1f}%".format)
        contains(method, " | ".join([f"| -{100 * loss:g}%", str(len(of)), *map(str, counts), *means]) + " |")
    on_vali, on_test, on_front = kept.sum()
    contains(goals, f"{len(found)} trainings", f" {on_vali} ", f" {on_test} ", f" {on_front} ")
    kinds = {"many": "generated, many paid", "one": "generated, one paid", "ml-100k": "ml-100k, folds 1 to 3",
             "ml-small": "ml-small-2018, folds 1, 2", "ml-1m": "MovieLens-1M, fold 1"}  # fmt: skip
    for start, name in kinds.items():
        of = found[found["data"].str.startswith(start)]
        shares = (100 * of[["test_second", "front"]].mean()).map("{:+.1f}%".format)
        seconds = of[["seconds", "seconds_front"]].mean().map("{:.1f}".format)
        counts = of[["kept_test", "on_front"]].sum()
        contains(method, " | ".join([f"| {name}", str(len(of)), *map(str, counts), *shares, *seconds]) + " |")
    lightgbm = found[found["library"] == "lightgbm"]
    one = lightgbm[lightgbm["data"].str.startswith(("many", "one")) & (lightgbm["loss"] == 0.01)]
    (label, bound), (of_one, with_bound) = (100 * of[["label", "test_second"]].mean() for of in (lightgbm, one))
    contains(method, f"one label had {label:.1f}% more of the second goal in the mean where LightGBM with bounds had "
             f"{bound:.1f}% more", f"it was {of_one:.1f}% where the bound had {with_bound:.1f}%")  # fmt: skip
    assert len(one) == 6
    error = 100 * (one["test_second"] - one["label"]).sem()
    contains(readme, f"LightGBM with a bound of 1% had {with_bound:.1f}% more revenue, and its own `lambdarank` on one "
             f"label that mixes both goals {of_one:.1f}%", f"error of the difference: {error:.1f} points")  # fmt: skip
    text = (ROOT / "docs" / "several_goals.md").read_text()
    lines = re.findall(r"^((?:may lose|weight) \S+) +\S+ +(\S+) +\S+ +(\S+)", text, re.MULTILINE)
    chosen = max((line for line in lines if float(line[1]) > -0.03), key=lambda line: float(line[2]))[0]
    contains(goals, f'If you allow 3%, "{chosen}" has most revenue of the lines above -0.03')


def test_numbers_about_money():
    goals, readme = page("docs/several_goals.md"), page("README.md")
    earned = {}
    for r in values("money")["results"]:
        if r["labels"] == "realised":
            earned.setdefault(r["trained"], []).append(r["percent"])
    dcg, chance, weight = (earned[name] for name in ("dcg of money", "chance of an order, times the margin",
                                                    "orders, weight: the session's money"))  # fmt: skip
    contains(goals, f"{span(dcg)}% more", f"{span(chance)}% more", f"{span(weight)}% more")
    text = (ROOT / "docs" / "several_goals.md").read_text()
    lines = re.findall(r"^(?:may lose|weight) \S+ +(\S+) +\S+ +\S+ +(\S+)", text, re.MULTILINE)
    first, second = max(((float(a), float(b)) for a, b in lines), key=lambda changes: changes[1])
    contains(readme, f"rises by up to {second:.0%}, where NDCG falls by {-first:.0%}")


def test_numbers_about_speed():
    speed, readme = page("docs/speed.md"), page("README.md")
    training = values("training")
    seconds = {(r["library"], r["objective"]): np.array(r["seconds"]) for r in training["results"]}
    contains(readme, f"{training['trees']} trees on {training['rows']:,} documents")
    contains(speed, f"{training['trees']} trees", f"{training['rows']:,} rows")
    catboost, xgboost, lightgbm = (
        np.median(seconds[library, "yetiloss:ndcg"] / seconds[library, native])
        for library, native in (("catboost", "YetiRank"), ("xgboost", "rank:ndcg"), ("lightgbm", "lambdarank"))
    )
    contains(speed, f"{catboost:.1f} times as long as YetiRank", f"{xgboost:.1f} times as long as `rank:ndcg`")
    assert lightgbm == pytest.approx(1, abs=0.05)
    ratios = {r[0]: float(r[-1].split()[0]) for r in publish.evaluation(values("evaluation"))[1:]}
    assert (ratios["xgboost"], ratios["lightgbm"]) == pytest.approx((0.5, 1), abs=0.1)
    contains(speed, f"{ratios['catboost']:.1f} times as long as in CatBoost")
    spinning = [np.median(r["seconds"]) / np.median(seconds["lightgbm", r["objective"]])
                for r in values("training_spinning")["results"]
                if r["library"] == "lightgbm" and "yetiloss" not in r["objective"]]  # it had ten draws  # fmt: skip
    contains(speed, f"{span(spinning, 1)} times as long")
    first = np.median([r["warm"] for r in values("startup")["results"]])
    contains(speed, f"{first:.1f} s together", f"{span([r['cold'] for r in values('startup')['results']])} s for each")
    sampled = pd.DataFrame(values("subsample")["results"])
    half, tenth = (sampled[sampled["share"] == share] for share in (0.5, 0.1))
    assert half["ratio"].min() > 0.8
    contains(speed, f"up to {-half['difference'].min():.3f} of NDCG@10", span(-tenth["difference"], 3))
    scaling = values("scaling")
    long = pd.DataFrame(scaling["long"]).set_index(["objective", "rows"])["seconds"]
    few = [name for name in long.index.unique("objective") if "partners=10" in name]
    ms = [[1000 * long[name, rows] for name in few] for rows in (100_000, 1_000_000)]
    contains(speed, f"{span(ms[0])} ms", f"{round(min(ms[1]), -1):.0f} to {round(max(ms[1]), -1):.0f} ms")
    pairs = [name.partition(":partners")[0].partition(";")[0] for name in few]
    every = [long[name, 100_000] for name in pairs]
    contains(speed, f"{min(every):.0f} to {round(max(every), -1):.0f} s")
    rows = pd.DataFrame(scaling["results"])
    assert (rows["linear"] <= 1).all()
    gain, many = rows["one_thread"] / rows["seconds"], rows["rows"] > 700_000
    contains(speed, f"{span(gain[many], 1)} times as fast, on fewer {span(gain[~many], 1)}")
    rank = {r["training"]: r["spearman"] for r in values("panel")["results"]}
    best = rank["LightGBM regression"]
    for native in ("LightGBM lambdarank", "XGBoost rank:pairwise"):
        assert rank[native] / best == pytest.approx(1 / 3, abs=0.03)
    assert rank["LightGBM ranknet:partners=10"] == pytest.approx(best, rel=0.02)


def test_numbers_about_hessians_and_draws():
    hessian, method = page("docs/hessian.md"), page("benchmarks/results/README.md")
    mean = {name: float(value) for name, value in re.findall(r"(\S+) +(\d\.\d{4}) a row", hessian)}
    lambdamart, yetiloss = 1 / mean["lambdamart"], 1 / mean["yetiloss:map"]
    contains(hessian, f"LambdaMART that is {lambdamart:.0f} rows", f"YetiLoss {yetiloss:.0f},",
             f"{3 * yetiloss:.0f} documents")  # fmt: skip
    table = pd.read_csv(RESULTS / "draws" / "against.csv")
    table["draws"] = table["objective"].str.rpartition("=")[2].astype(int)
    means = 1000 * table.groupby(["part", "draws"])["difference"].mean()
    behind = table[(table["p"] < 0.05) & (table["difference"] < 0)].groupby(["part", "draws"]).size()
    for draws in table["draws"].unique():
        for part in ("200 trees", "30 trees"):
            cells = re.search(rf"^\| {draws} \|(.+)\|$", (RESULTS / "README.md").read_text(), re.M)[1].split("|")
            shown, names = cells[:2] if part == "200 trees" else cells[2:]
            assert float(shown) == pytest.approx(means[part, draws], abs=0.05)
            assert ("none" in names) == ((part, draws) not in behind)
    contains(method, f"{behind['30 trees', 1]} of 15: NDCG@10 and P@5 in XGBoost and LightGBM, ERR in all")
    three = table[(table["draws"] == 3) & (table["part"] == "200 trees") & (table["library"] == "catboost")]
    three = three.set_index("metric")["difference"]
    assert [f"{-three[m]:.3f}" for m in ("ndcg@10", "map")] == ["0.003"] * 2
    lost = [-means["30 trees", n] / 1000 for n in (3, 1)]
    contains(hessian, "0.003 less NDCG@10 and MAP in CatBoost", "{:.3f} less, and one {:.3f}".format(*lost))
    stratified = pd.read_csv(RESULTS / "draws_stratified" / "against.csv")
    assert not ((stratified["p"] < 0.05) & (stratified["difference"] < 0)).any()
    assert len(stratified) == 2 * 30
    assert set(stratified["queries"]) == {3780}
    assert YetiLoss().permutations == 5
    for draws, word in ((5, "five"), (7, "seven")):
        of = stratified[stratified["objective"].str.endswith(f"={draws}")]
        many, few = (1000 * of.groupby("part")["difference"].mean()[part] for part in ("200 trees", "30 trees"))
        contains(method, f"| {word} | {many:+.1f} | none | {few:+.1f} | none |")
    few = stratified[stratified["objective"].str.endswith("=5") & (stratified["part"] == "30 trees")]
    contains(method, f"five draws are lower in {(few['difference'] < 0).sum()} of {len(few)} cells")
    assert (few["difference"] > -2 * few["se"]).all()
    samples = pd.read_csv(RESULTS / "samples" / "against.csv")
    for (part, library), of in samples.groupby(["part", "library"]):
        cells = (f"{1000 * r.difference:+.1f} ({1000 * r.se:.1f})".replace("-0.0", "0.0").replace("+0.0", "0.0")
                 + (" ▲" if r.difference > 0 else " ▼") * (r.p < 0.05) for r in of.itertuples())  # fmt: skip
        contains(method, f"| {part.split()[0]} | {publish.TITLES[library]} | {' | '.join(cells)} |")


def test_numbers_about_retraining():
    retrain = page("docs/retrain.md")
    table = pd.DataFrame(values("retrain")["results"])
    cells = table.set_index(["drift", "way", "library"])
    scratch, last, on, moved, slow, first = cells.index.unique("way")[[0, 1, 2, 4, 3, 5]]
    lost = -cells["difference"].xs(first, level="way").groupby("drift").mean()
    contains(retrain, f"{lost['slow']:.2f} NDCG@10", f"{lost['fast']:.2f} of fast")
    metric, seconds = cells["metric"].unstack("way"), cells["seconds"].unstack("way")
    assert (metric[last] > metric[scratch]).all()
    fast = metric.loc["fast"], seconds.loc["fast"]
    for library in ("xgboost", "lightgbm"):
        assert (fast[0].loc[library, [on, moved]] > fast[0].loc[library, last]).all()
    ratios = fast[1].loc[["xgboost", "lightgbm"], [on, moved]].div(fast[1][last], axis=0).stack().dropna()
    contains(retrain, f"{span(ratios, 1)} times")
    assert fast[0].loc["catboost"].idxmax() == last
    assert (metric.loc["slow", last] > metric.loc["slow", on]).all()
    assert metric.loc["slow"].drop("xgboost").idxmax(axis=1).tolist() == [last] * 2
    assert abs(metric.loc[("slow", "xgboost"), moved] - metric.loc[("slow", "xgboost"), last]) < 0.002
    catboost = metric.xs("catboost", level="library")
    assert (catboost.drop(columns=[slow, first]).min(axis=1) > catboost[slow]).all()


def test_numbers_of_other_pages():
    bags = pd.DataFrame(values("bags")["results"])
    pooled = bags[bags["data"] == POOLED].set_index(["arm", "library"])
    of_all, single = (pooled.loc[arm] for arm in ("bags of train and vali", "one model of train and vali"))
    assert 1.9 < (of_all["difference"] / of_all["se"]).min() < (of_all["difference"] / of_all["se"]).max() < 5
    contains(page("docs/estimators.md"), f"{pooled['queries'].max():,} queries", span(of_all["difference"], 3),
             span(single["difference"], 3))  # fmt: skip
    mixture = pd.DataFrame(values("calibration")["results"]).query("objective == 'mixture'").set_index("library")
    ndcg = mixture["ndcg_difference"]
    assert abs(ndcg["lightgbm"]) < mixture["ndcg_se"]["lightgbm"]
    contains(page("docs/weights.md"), f"{span(-mixture['log_loss_difference'], 3)} less",
             f"{ndcg['xgboost']:.3f} higher", f"{-ndcg['catboost']:.3f} lower")  # fmt: skip
    large = values("large")
    grown = {(r["library"], r["objective"]): r["training"] - r["before"] for r in large["results"]}
    for library, plain in (("xgboost", "reg:squarederror"), ("lightgbm", "regression")):
        more = (grown[library, "yetiloss"] - grown[library, plain]) / large["rows"]
        assert more == pytest.approx(55, abs=4), "docs/large_data.md"
    lists = pd.DataFrame(values("one_list")["results"]).set_index(["seed", "objective"])["map"].unstack()
    ahead = lists["lambdamart:map;partners=10"] - lists["binary"]
    contains(page("docs/troubleshooting.md"), "by {:.3f} and {:.3f}".format(*ahead))
    ms = {(r["library"], r["way"]): r["ms"] for r in values("latency")["results"]}
    most = max(ms[name, "estimator, frame"] / ms[name, "library, array"] for name in ("xgboost", "lightgbm"))
    assert most == pytest.approx(60, abs=5), "docs/serving.md"
    arrays = [found for (_, way), found in ms.items() if way == "library, array"]
    contains(page("docs/serving.md"), f"in {span(arrays, 1)} ms")
    lost = []
    for name in ("more_search", "more_movielens"):
        table = pd.read_csv(RESULTS / name / "summary.csv").query("data == @POOLED and metric == 'ndcg@10'")
        mean = table.groupby("objective")["mean"].mean()
        lost.append(f"{mean['yetiloss:ndcg'] - mean['yetiloss:ndcg;neighbors=1']:.3f}")
    contains(page("docs/choose_objective.md"), f"{lost[0]} on search", f"{lost[1]} on MovieLens")
    own = pd.read_csv(RESULTS / "own" / "against.csv")
    assert (own["difference"].abs() < 2 * own["se"]).all()
    three = 1 / np.log2(np.arange(2, 5))  # discounts
    contains(page("docs/recommend.md"), f"{three.sum():.3f}")


def test_numbers_of_the_first_study():
    method, paper = page("benchmarks/results/README.md"), page("paper/paper.md")
    real, held = (lead(name).reset_index() for name in ("real", "held_out"))
    pooled = real[real["data"] == POOLED]
    z, each, chosen = (pooled[a] / pooled[b] for a, b in
                       (("difference", "se"), ("by_set", "by_set_se"), ("on_vali", "on_vali_se")))  # fmt: skip
    significant = pooled[pooled["p"] < 0.05]
    ahead = pooled["difference"][z > 2]
    assert ((z > 2).sum(), (z < -2).sum(), (z > 0).sum(), (each > 0).sum(), (each > 2).sum()) == (4, 0, 13, 11, 4)
    assert (f"{span(ahead, 3)}", (chosen > 2).sum()) == ("0.001 to 0.004", 8)
    assert significant[["metric", "library"]].to_numpy().tolist() == [
        ["ndcg@10", "xgboost"], ["ndcg@10", "lightgbm"], ["precision@5", "xgboost"]]  # fmt: skip
    contains(method, f"Of these {pooled['queries'].max():,} queries", f"The {held['queries'].max():,} of folds 2 to 4")
    z = held["difference"] / held["se"]
    assert ((z > 2).sum(), held[z < -2][["metric", "library"]].to_numpy().tolist()) == (3, [["map", "catboost"]])
    assert (held["p"] > 0.05).all()
    contains(method, f"MAP in CatBoost is behind, by {-held['difference'][z < -2].iloc[0]:.4f}")
    contains(paper, f"on {pooled['queries'].max():,} queries, had four of 15 ahead; on its {held['queries'].max():,} "
             "held-out queries three were ahead and one was behind")  # fmt: skip
    defaults = pooled.groupby("library")["native_at_defaults"].mean()
    contains(method, f"in {defaults['catboost']:.0%} of the folds")
    table = pd.read_csv(RESULTS / "real" / "objectives.csv").set_index(["data", "metric", "objective"]).sort_index()
    films = table.loc["MovieLens"].xs("yetiloss:{metric}", level="objective")
    three = films.loc[["map", "mrr", "precision@5"], ["difference", "se"]].to_numpy().ravel()
    contains(method, "by {:.4f} (standard error {:.4f}), {:.4f} ({:.4f}) and {:.4f} ({:.4f})".format(*three))
    search = table.loc["search", "difference"]
    gaps = [search[m, "yetiloss:ndcg" if m == "ndcg@10" else "yetiloss"] - search[m, "yetiloss:gap"]
            for m in ("ndcg@10", "err")]  # fmt: skip
    contains(method, "by {:.3f} and {:.3f}.".format(*gaps))


def test_numbers_of_the_choice_of_names():
    method = page("benchmarks/results/README.md")
    table = pd.read_csv(RESULTS / "candidates" / "objectives.csv")
    of = table[table["data"] != POOLED].pivot(index=["metric", "data"], columns="objective", values="difference")
    loss = -of.sub(of.max(axis=1), axis=0)
    ndcg = loss.loc["ndcg@10"]
    normalised, plain, cut = ("yetiloss:ndcg", "yetiloss:ndcg;lambda_norm=False", "yetiloss")
    worst = ndcg[[normalised, plain, cut]].max()
    contains(method, "the normalised loss is {:.4f} below the best candidate, the unnormalised one {:.4f}, and the one "
             "with a cutoff {:.4f}".format(*worst))  # fmt: skip
    pooled = table[(table["data"] == POOLED) & (table["metric"] == "ndcg@10")].set_index("objective")
    means = pooled["difference"][[normalised, plain, cut]]
    contains(method, f"lie within {np.ptp(means):.4f} NDCG@10 of each other (standard error "
             f"{pooled['se'][normalised]:.4f}")  # fmt: skip
    contains(method, f"`gap` loses {ndcg['yetiloss:gap']['MovieLens'] - ndcg[normalised]['MovieLens']:.3f} of NDCG@10")
    loss.loc[(slice(None), "LETOR"), :] /= 2
    regret = loss[[normalised, plain, cut]].groupby("metric").max()
    assert (regret[normalised] - regret.min(axis=1) < 0.001).all()
    assert (regret[normalised] > regret.min(axis=1)).all()
    draws = pd.read_csv(RESULTS / "draws_insuranceqa" / "against.csv").query("metric == 'ndcg@10'")
    sampled = draws[draws["objective"].str.contains("stochasticrank")]["difference"]
    assert [f"{-x:.2f}" for x in sampled] == ["0.02"] * 2
    assert (draws["p"][draws["objective"].str.contains("yetiloss")] > 0.05).all()
    samples = values("catboost_samples")
    found = pd.DataFrame(samples["results"]).query("metric == 'ndcg@10'").set_index("data")
    new, whole, most = (f"{found['difference'][n]:.4f} ({found['se'][n]:.4f})" for n in
                        ("the first four", "all nine", "NFCorpus"))  # fmt: skip
    contains(method, f"higher by {new} on the four new sets and by {whole} on all nine, of which NFCorpus gained most, "
             f"{most}")  # fmt: skip
    five = {r["data"]: r["ndcg@10"] for r in samples["five_objectives"]["results"]}
    films, shop = five["ml-100k, ml-small-2018"], five["Home Depot (half)"]
    contains(method, f"lower by {-films[0] / 1000:.4f} ({films[1] / 1000:.4f}) on MovieLens, higher by "
             f"{shop[0] / 1000:.4f} ({shop[1] / 1000:.4f}) on Home Depot")  # fmt: skip
    labels = lead("fractional").loc["real data"]
    ndcg, dcg = "ndcg(gain_type=linear)@10", "dcg(gain_type=linear)"
    texts = [with_error(*labels.loc[(m, library), ["difference", "se"]])[1]
             for library in ("xgboost", "catboost") for m in (ndcg, dcg)]  # fmt: skip
    contains(method, "{} less NDCG and {} less DCG than the metric itself, and the better of CatBoost's own objectives "
             "{} and {} more".format(*texts))  # fmt: skip


def test_other_numbers_of_the_paper():
    seconds = {(r["library"], r["objective"]): np.array(r["seconds"]) for r in values("training")["results"]}
    natives = {"xgboost": "rank:ndcg", "lightgbm": "lambdarank", "catboost": NATIVE["catboost"][1]}
    xgboost, lightgbm, catboost = (
        [np.median(seconds[library, f"yetiloss:{m}"] / seconds[library, name]) for m in ("ndcg@10", "ndcg", "gap")]
        for library, name in natives.items()
    )
    calls = sum(map(len, read_toml(ROOT / "tests" / "refusals.toml").values()))
    contains(page("paper/paper.md"), f"a list of about {round(calls, -2)} such calls",
             f"takes {np.median(xgboost):.1f} times as long as with the library's own ranking objective in XGBoost, "
             f"{span(lightgbm, 1)} times in LightGBM, and {np.median(catboost):.1f} times")  # fmt: skip
