"""Runs and judgements of TREC: every value as trec_eval computes it, with documents that only one of them has."""

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("pandas")
pytest.importorskip("sklearn")
pytrec_eval = pytest.importorskip("pytrec_eval")

from commands import fails, run, run_json  # noqa: E402 - skipped without

THEIRS = {
    "ndcg": "ndcg", "ndcg@5": "ndcg_cut_5", "map": "map", "map@5": "map_cut_5", "mrr": "recip_rank",
    "precision@5": "P_5", "recall@5": "recall_5", "recall@100": "recall_100",
}  # fmt: skip
ASKED = {"ndcg", "map", "recip_rank", "ndcg_cut.5", "map_cut.5", "P.5", "recall.5,100"}


def random_trec(seed):
    """A run and judgements with ties, of float32 too, and with documents and queries that only one of them has."""
    rng = np.random.default_rng(seed)
    run, qrels = {}, {}
    for q in range(30):
        names = [f"d{i}" for i in rng.permutation(40)]
        retrieved = names[: rng.integers(1, 25)]
        judged = rng.permutation(names)[: rng.integers(1, 30)]
        scores = np.round(rng.normal(size=len(retrieved)), 1) + rng.choice([0.0, 1e-12], len(retrieved))
        if q % 7 != 3:
            run[str(q)] = {d: float(s) for d, s in zip(retrieved, scores, strict=True)}
        if q % 7 != 5:
            labels = rng.choice([-2, 0, 1, 2, 3], len(judged), p=[0.1, 0.4, 0.2, 0.2, 0.1])
            qrels[str(q)] = {str(d): int(y) for d, y in zip(judged, labels, strict=True)}
    qrels["0"] = dict.fromkeys(qrels["0"], 0)
    return run, qrels


def write(folder, run, qrels):
    (folder / "run").write_text(
        "".join(f"{q} Q0 {d} 1 {s!r} tag\n" for q, found in run.items() for d, s in found.items())
    )
    (folder / "qrels").write_text("".join(f"{q}\t0  {d} {y}\n" for q, found in qrels.items() for d, y in found.items()))
    return ["--run", folder / "run", "--qrels", folder / "qrels"]


@pytest.mark.parametrize("seed", range(5))
def test_the_values_are_those_of_trec_eval(tmp_path, seed):
    run, qrels = random_trec(seed)
    expected = pytrec_eval.RelevanceEvaluator(qrels, ASKED).evaluate(run)
    asked = ["evaluate", "--metric", ",".join(THEIRS), "--per-query", "--convention", "trec_eval"]
    asked += write(tmp_path, run, qrels)
    found = run_json(*asked)
    assert sorted(found["per_query"]["qid"]) == sorted(expected)
    for ours, theirs in THEIRS.items():
        by_query = dict(zip(found["per_query"]["qid"], found["per_query"][ours], strict=True))
        assert by_query == pytest.approx({q: values[theirs] for q, values in expected.items()}, abs=1e-12)
        assert found["metrics"][ours] == pytest.approx(np.mean([v[theirs] for v in expected.values()]))
    condensed = pytrec_eval.RelevanceEvaluator(qrels, ASKED, judged_docs_only_flag=True).evaluate(run)
    only = run_json(*asked, "--drop-unjudged")
    for ours, theirs in THEIRS.items():
        by_query = dict(zip(only["per_query"]["qid"], only["per_query"][ours], strict=True))
        assert by_query == pytest.approx({q: values[theirs] for q, values in condensed.items()}, abs=1e-12)
    complete = run_json(*asked, "--complete")
    assert complete["queries"] == len(qrels)
    for ours, theirs in THEIRS.items():
        total = sum(v[theirs] for v in expected.values())
        assert complete["metrics"][ours] == pytest.approx(total / len(qrels))


RUN = {"7": {"a": 3.0, "b": 2.0, "c": 1.0}, "x": {"a": 1.0}}
QRELS = {"7": {"b": 1, "d": 1}, "y": {"a": 1}}


def test_relevant_documents_that_were_not_retrieved_count(tmp_path):
    files = write(tmp_path, RUN, QRELS)
    found = run_json("evaluate", "--metric", "map,recall@3,mrr,ndcg,err", *files)
    ideal = 1 + 1 / np.log2(3)
    expected = {"map": 0.25, "recall@3": 0.5, "mrr": 0.5, "ndcg": 1 / np.log2(3) / ideal, "err": 1 / 16 / 2}
    assert found["metrics"] == pytest.approx(expected)


def test_equal_scores_are_averaged_unless_a_convention_orders_them(tmp_path):
    files = write(tmp_path, {"1": {"a": 0.0, "b": 0.0}}, {"1": {"a": 1, "c": 0}})
    assert run_json("evaluate", "--metric", "mrr", *files)["metrics"] == {"mrr": 0.75}
    assert run_json("evaluate", "--metric", "mrr", "--convention", "trec_eval", *files)["metrics"] == {"mrr": 0.5}


def test_documents_left_out_are_named(tmp_path):
    files = write(tmp_path, RUN, QRELS)
    judged, ranked = (
        "1 query with judgements but not in the run: left out without --complete",
        "1 query of the run without judgements: left out",
    )
    assert run_json("evaluate", *files)["notes"] == [ranked, judged]
    assert run_json("evaluate", "--complete", *files)["notes"] == [ranked]
    assert f"note: {judged}\n" in run("evaluate", *files)


def test_a_query_without_a_judged_document_is_left_out_with_them(tmp_path):
    files = write(tmp_path, {"1": {"a": 1.0}, "2": {"a": 1.0}}, {"1": {"a": -1}, "2": {"b": 0, "a": 1}})
    found = run_json("evaluate", "--metric", "mrr", "--drop-unjudged", "--per-query", *files)
    assert found["per_query"] == {"qid": ["2"], "mrr": [1.0]}


@pytest.mark.parametrize(
    ("run_text", "qrels_text", "arguments", "message"),
    [
        ("1 0 a 1\n", "1 0 a 1\n", [], "is not of the form 'query Q0 document rank score tag'"),
        ("1 Q0 a 1 2 t\n2 Q0 b 1 2\n", "1 0 a 1\n", [], "1 rows have other lengths, as '2 Q0 b 1 2'"),
        ("1 Q0 a 1 2 t\n", "1 0 a 1\n1 0 b 1 2\n", [], "is not of the form 'query 0 document label'"),
        ("# a comment\n", "1 0 a 1\n", [], "it has comments only"),
        ("1 Q0 a 1 x t\n", "1 0 a 1\n", [], "could not convert string to float"),
        ("1 Q0 a 1 nan t\n", "1 0 a 1\n", [], "has a score that is not finite: a in query 1"),
        ("1 Q0 a 1 2 t\n1 Q0 a 2 1 t\n", "1 0 a 1\n", [], "has a document twice: a in query 1"),
        ("1 Q0 a 1 2 t\n", "2 0 a 1\n", [], "no query of --run is in --qrels; their ids are such as '1' and '2'"),
        ("", "2 0 a 1\n", [], "No columns to parse from file"),
        ("1 Q0 a 1 2 t\n", "1 0 a 1\n", ["--metric", "auc"], "auc needs the rank of every document"),
        ("1 Q0 a 1 2 t\n", "1 0 a 1\n", ["--scores", "x"], "without other files"),
    ],
)
def test_errors_name_file_and_place(tmp_path, run_text, qrels_text, arguments, message):
    (tmp_path / "run").write_text(run_text)
    (tmp_path / "qrels").write_text(qrels_text)
    assert message in fails("evaluate", "--run", tmp_path / "run", "--qrels", tmp_path / "qrels", *arguments)


def test_comments_and_what_follows_the_tag_are_not_read(tmp_path):
    """A mark of comments within an id is a part of it."""
    run, qrels = {"1": {"a#1": 2.0, "b": 1.0}, "#2": {"a": 1.0}}, {"1": {"b": 1, "#c": 1}}
    files = write(tmp_path, run, qrels)
    plain = run_json("evaluate", "--metric", "map,recall@5", *files)
    for name, more in (("run", " and more"), ("qrels", "")):
        lines = (tmp_path / name).read_text().splitlines()
        (tmp_path / name).write_text("\n".join(["# a comment of so many words", *(line + more for line in lines), "#"]))
    assert run_json("evaluate", "--metric", "map,recall@5", *files)["metrics"] == plain["metrics"]
    assert plain["metrics"] == {"map": 0.25, "recall@5": 0.5}


def test_ids_are_read_as_they_are_written(tmp_path):
    run, qrels = (
        {"NA": {'"q': 2.0, "null": 1.0}, "01": {"1": 1.0}, "1": {"1": 1.0}},
        {"NA": {"null": 1}, "01": {"1": 1}},
    )
    found = run_json("evaluate", "--metric", "mrr", "--per-query", *write(tmp_path, run, qrels))
    assert found["per_query"] == {"qid": ["NA", "01"], "mrr": [0.5, 1.0]}
