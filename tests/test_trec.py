"""Runs and judgements as dictionaries, against trec_eval."""

import numpy as np
import pytest

from ltr_objectives import LTRError, evaluate, to_qrels, to_run

SCORES, LABELS = [1.0, 2.0, 3.0], [1, 0, 2]


@pytest.mark.parametrize("ids", ["group", "qid"])
def test_trec_eval_computes_our_values_of_them(ids, rng):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    sizes = rng.integers(1, 20, 40)
    scores, labels = rng.normal(size=sizes.sum()).round(1), rng.integers(0, 4, sizes.sum())  # with ties
    of = {"group": sizes} if ids == "group" else {"qid": np.repeat(rng.permutation(100)[:40], sizes)}
    run, qrels = to_run(scores, **of), to_qrels(labels, **of)
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg", "map", "recip_rank"}).evaluate(run)
    for ours, name in {"ndcg": "ndcg", "map": "map", "mrr": "recip_rank"}.items():
        expected = [theirs[query][name] for query in run]
        assert evaluate(ours, scores, labels, **of, convention="trec_eval") == pytest.approx(np.mean(expected))


def test_documents_have_names_and_may_have_no_judgement():
    qid, item = ["a", "a", "b"], np.array([7, 8, 7])
    assert to_run(SCORES, qid=qid, item=item) == {"a": {"7": 1.0, "8": 2.0}, "b": {"7": 3.0}}
    assert to_qrels([np.nan, 0, 2], qid=qid, item=item) == {"a": {"8": 0}, "b": {"7": 2}}
    for same in (np.array([7.0, 7.0, 8.0]), [7, 7, 8], ["7", "7", "8"], np.array([b"7", b"7", b"8"])):
        assert [*to_run(SCORES, qid=same)] == ["7", "8"]
        assert [*to_run(SCORES[1:], [2], item=same[1:])["1"]] == ["7", "8"]
    assert to_qrels([np.nan, np.nan, 1], [2, 1], item=["a", "b", "b"]) == {"1": {}, "2": {"b": 1}}
    assert {type(label) for of in to_qrels(np.float32(LABELS), [3]).values() for label in of.values()} == {int}


@pytest.mark.parametrize(
    ("function", "values", "of", "said"),
    [
        (to_run, [1.0, np.nan, 3.0], {"group": [3]}, "scores must be finite, but row 1 is nan"),
        (to_run, SCORES, {}, r"pass group= \(sizes\) or qid= \(one id per row\)"),
        (to_run, SCORES, {"group": [2]}, "group adds up to 2 rows, but there are 3"),
        (to_run, SCORES, {"qid": [1, 1]}, "qid has 2 rows, but there are 3"),
        (to_run, [], {"group": [3]}, "there are no rows"),
        (to_run, SCORES, {"qid": [1, 2, 1]}, "qid is not sorted"),
        (to_run, SCORES, {"group": [3], "item": [1, 2]}, "item has 2 entries; pass one per row \\(3\\)"),
        (to_run, SCORES, {"group": [3], "item": [1, None, 2]}, "item has no id in row 1"),
        (to_run, SCORES, {"qid": [5, 6, 6], "item": [1, 2, 2]}, "item has '2' in rows 1 and 2 of query 6; keep one"),
        (to_qrels, LABELS, {"group": [2]}, "group adds up to 2 rows, but there are 3"),
        (to_qrels, [0, 0.5, 1], {"group": [3]}, "labels must be whole numbers of 32 bits, .* but row 1 is 0.5"),
        (
            to_qrels,
            [0, 2.0**31, 1],
            {"group": [3]},
            "labels must be whole numbers of 32 bits, .* but row 1 is 2147483648",
        ),
        (to_qrels, [0, np.inf, 1], {"group": [3]}, "labels must be whole numbers of 32 bits, .* but row 1 is inf"),
    ],
)
def test_wrong_input_is_refused(function, values, of, said):
    with pytest.raises(LTRError, match=said):
        function(values, **of)
