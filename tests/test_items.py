"""Coverage, novelty, diversity and serendipity against their definitions, query by query."""

from itertools import combinations

import numpy as np
import pytest

from ltr_objectives import evaluate_items
from ltr_objectives.errors import LTRError


def by_definition(scores, item, sizes, k, familiarity, vectors, labels, expected):
    shown, novelty, diversity, serendipity, first = set(), [], [], [], 0
    for size in sizes:
        rows = sorted(range(first, first + size), key=lambda row: (-scores[row], row))[:k]
        first += size
        shown |= {item[row] for row in rows}
        novelty.append(np.mean([-np.log2(familiarity[row]) for row in rows]))
        serendipity.append(np.mean([labels[row] > 0 and not expected[row] for row in rows]))
        pairs = [(vectors[a], vectors[b]) for a, b in combinations(rows, 2)]
        if pairs:
            cosines = [v @ w / np.sqrt((v @ v) * (w @ w)) for v, w in pairs]
            diversity.append(1 - np.mean(cosines))
    means = [np.mean(values) if values else np.nan for values in (novelty, diversity, serendipity)]
    return [len(shown), len(shown) / len(set(item)), *means]


@pytest.mark.parametrize("k", [1, 2, 3, 50])
@pytest.mark.parametrize("kind", [int, str])
def test_values_are_those_of_the_definitions(k, kind):
    rng = np.random.default_rng(k)
    sizes = np.array([1, 5, 2, 40, 7])
    n = int(sizes.sum())
    scores = rng.integers(0, 6, n).astype(float)  # with ties
    item = [kind(i) for i in rng.integers(0, 30, n)]
    familiarity, vectors = rng.uniform(0.01, 1, n), rng.normal(size=(n, 4))
    labels, expected = rng.integers(0, 3, n), rng.random(n) < 0.4
    found = evaluate_items(
        scores, item, sizes, k=k, familiarity=familiarity, vectors=vectors, labels=labels, expected=expected
    )
    assert list(found) == [f"{name}@{k}" for name in ("items", "coverage", "novelty", "diversity", "serendipity")]
    expected = by_definition(scores, item, sizes, k, familiarity, vectors, labels, expected)
    np.testing.assert_allclose(list(found.values()), expected, rtol=1e-12)


def test_ids_and_a_catalogue():
    qid, scores, item = [4, 4, 4, 9, 9], [1.0, 2.0, 3.0, 1.0, 2.0], [1, 2, 3, 1, 3]
    assert evaluate_items(scores, item, qid=qid, k=1, catalogue=10) == {"items@1": 1.0, "coverage@1": 0.1}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"item": [1]}, "item has 1 entries, but there are 2 rows"),
        ({"item": [1, None]}, "item has no id in row 1"),
        ({"k": 0}, "k=0 must be a whole number of at least 1"),
        ({"catalogue": 1}, "catalogue=1 must be a whole number of at least 2"),
        ({"familiarity": [0.5]}, "familiarity has 1 entries, but there are 2 rows"),
        ({"familiarity": [0.5, 0.0]}, "familiarity must be shares of users above 0 and at most 1"),
        ({"familiarity": [0.5, 3.0]}, "familiarity must be shares of users above 0 and at most 1"),
        ({"vectors": [1.0, 2.0]}, r"vectors must have shape \(rows, dimensions\)"),
        ({"vectors": [[1.0]]}, "vectors has 1 entries, but there are 2 rows"),
        ({"vectors": [[1.0], [0.0]]}, "vectors must be finite and not all zeros, but row 1 is not"),
        ({"vectors": [[np.nan], [1.0]]}, "vectors must be finite and not all zeros, but row 0 is not"),
        ({"labels": [1, 0]}, "serendipity needs both labels= and expected="),
        ({"labels": [1, 0], "expected": [1, 0]}, "expected must be True and False"),
        ({"scores": [np.nan, 1.0]}, "scores must be finite"),
    ],
)
def test_wrong_input_is_refused(given, said):
    with pytest.raises(LTRError, match=said):
        evaluate_items(**{"scores": [1.0, 2.0], "item": [1, 2], "group": [2], **given})


def test_the_command_line_reads_columns(tmp_path):
    pytest.importorskip("typer")
    pd = pytest.importorskip("pandas")
    from commands import fails, run, run_json

    rng = np.random.default_rng(7)
    n = 60
    table = pd.DataFrame(
        {"label": rng.integers(0, 3, n), "user": rng.integers(0, 9, n), "film": rng.integers(0, 20, n)}
    )
    table = table.assign(
        known=rng.uniform(0.1, 1, n), a=rng.normal(size=n), b=rng.normal(size=n), hit=rng.random(n) < 0.5
    )
    table.to_csv(tmp_path / "all.csv", index=False)
    scores = rng.normal(size=n)
    np.save(tmp_path / "scores.npy", scores)
    base = [
        "evaluate",
        "--data",
        tmp_path / "all.csv",
        "--qid",
        "user",
        "--scores",
        tmp_path / "scores.npy",
        "--top",
        2,
    ]
    more = ["--familiarity", "known", "--vectors", "a,b", "--expected", "hit"]
    found = run_json(*base, "--item", "film", *more)["metrics"]
    order = np.argsort(table["user"], kind="stable").to_numpy()
    t = table.iloc[order]
    expected = evaluate_items(
        scores[order], t["film"], qid=t["user"], k=2, familiarity=t["known"], vectors=t[["a", "b"]], labels=t["label"],
        expected=t["hit"].to_numpy(),
    )  # fmt: skip
    assert found == pytest.approx({"ndcg@10": found["ndcg@10"], **expected})
    assert "coverage@2" in run(*base, "--item", "film")
    assert run_json(*base[:-1], 1, "--item", "film", "--vectors", "a,b")["metrics"]["diversity@1"] is None
    assert "there is no column 'movie'" in fails(*base, "--item", "movie")
    assert "--familiarity, --vectors and --expected need --item" in fails(*base, *more)
    assert "--item names a column of --data" in fails(*base, "--item", "film", "--drop-unjudged")
