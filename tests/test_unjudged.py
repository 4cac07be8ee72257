"""Documents without a label: left out by hand, query by query, they give the values that ``unjudged="drop"`` gives."""

import numpy as np
import pytest
from generated import ranking

from ltr_objectives import LTRError, evaluate

RNG = np.random.default_rng(5)
X, Y, QID = ranking(2)
SIZES, SCORES = np.bincount(QID), np.round(X[:, 0], 1)
GAPS = {"stars": np.where(RNG.random(len(Y)) < 0.4, np.nan, Y), "clicks": np.where(RNG.random(len(Y)) < 0.3, np.nan, Y)}
for labels in GAPS.values():
    labels[QID == 3] = np.nan  # a query without a judged document
WEIGHT = RNG.uniform(0.5, 2, len(Y))
METRICS = ["ndcg@5", "map(empty=skip)", "rmse", "mrr[clicks]"]


def by_hand(name, goal, q):
    kept = (q == QID) & ~np.isnan(GAPS[goal])
    plain = name.partition("[")[0]
    return evaluate(plain, SCORES[kept], GAPS[goal][kept], [kept.sum()], per_query=True)[0] if kept.any() else np.nan


def test_values_are_those_of_the_shorter_lists():
    found = evaluate(METRICS, SCORES, GAPS, SIZES, unjudged="drop", per_query=True)
    means = evaluate(METRICS, SCORES, GAPS, qid=QID, weight=WEIGHT, unjudged="drop")
    for name, values in found.items():
        goal = "clicks" if "[" in name else "stars"
        np.testing.assert_allclose(values, [by_hand(name, goal, q) for q in range(len(SIZES))], rtol=1e-12)
        assert np.isnan(values).any()
        if name == "rmse":
            continue
        kept = ~np.isnan(GAPS[goal])
        weight = np.array([WEIGHT[kept & (q == QID)].mean() if (kept & (q == QID)).any() else 0 for q in range(60)])
        some = ~np.isnan(values)
        assert means[name] == pytest.approx(np.average(values[some], weights=weight[some]))
    kept = ~np.isnan(GAPS["stars"])
    assert means["rmse"] == pytest.approx(evaluate("rmse", SCORES[kept], Y[kept], [kept.sum()], WEIGHT[kept]))
    same = evaluate(METRICS[:3], SCORES, Y, SIZES)
    assert evaluate(METRICS[:3], SCORES, Y, SIZES, unjudged="drop") == pytest.approx(same)


def test_the_first_three_ratings_of_five_documents():
    # of the first three documents one has no rating, and two of the first three with one are relevant
    stars = [1, np.nan, 0, 1, np.nan]
    assert evaluate("precision@3", [5, 4, 3, 2, 1], stars, [5], unjudged="drop") == pytest.approx(2 / 3)


def test_nothing_is_left_out_unless_asked():
    with pytest.raises(LTRError, match=r"labels must be finite, but row \d+ is nan; .*unjudged='drop'\)$"):
        evaluate("map", SCORES, GAPS["stars"], SIZES)
    wrong = [
        ({"unjudged": "leave"}, "unjudged='leave' is not known; choose one of 'refuse', 'drop'"),
        ({"labels": np.full(len(Y), np.nan)}, "there are no rows, but a data set needs at least one"),
        ({"labels": np.full(len(Y), np.inf)}, "labels must be finite, but row 0 is inf"),
        ({"scores": np.full(len(Y), np.nan)}, "scores must be finite"),
        ({"metric": "map[stars]"}, "there are no labels 'stars'"),
    ]
    for changed, told in wrong:
        given = {"metric": "map", "scores": SCORES, "labels": GAPS["stars"], "group": SIZES, "unjudged": "drop"}
        with pytest.raises(LTRError, match=told):
            evaluate(**{**given, **changed})


@pytest.mark.parametrize("kind", ["npy", "csv"])
def test_the_command_line_leaves_them_out_too(tmp_path, kind):
    pytest.importorskip("typer")
    pd = pytest.importorskip("pandas")
    from commands import fails, run_json

    columns = {"label": GAPS["stars"], "qid": QID, "score": SCORES}
    np.save(tmp_path / "score.npy", SCORES)
    given = ["--scores", tmp_path / "score.npy"]
    if kind == "csv":
        pd.DataFrame(columns).to_csv(tmp_path / "all.csv", index=False)
        given += ["--data", tmp_path / "all.csv"]
    else:
        np.save(tmp_path / "label.npy", columns["label"])
        np.save(tmp_path / "qid.npy", QID)
        given += ["--labels", tmp_path / "label.npy", "--qid", tmp_path / "qid.npy"]
    found = run_json("evaluate", "--metric", "map", "--drop-unjudged", "--per-query", *given)
    expected = evaluate("map", SCORES, GAPS["stars"], SIZES, unjudged="drop", per_query=True)
    kept = ~np.isnan(expected)
    assert found["metrics"]["map"] == pytest.approx(np.nanmean(expected))
    assert [int(q) for q in found["per_query"]["qid"]] == np.flatnonzero(kept).tolist()
    assert found["per_query"]["map"] == pytest.approx(expected[kept])
    assert "finite" in fails("evaluate", "--metric", "map", *given)
