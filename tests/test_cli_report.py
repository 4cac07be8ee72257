"""``ltr-objectives report``: the text of ``objective.report``, for files."""

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("sklearn")

from commands import fails, run, run_json, write_letor

from ltr_objectives import get_objective
from ltr_objectives.datasets import make_ranking

DATA = make_ranking(12, features=10, mean_length=6)


@pytest.fixture(autouse=True)
def folder(workplace):
    write_letor(workplace / "data.txt", DATA)
    for name, values in (("labels", DATA.y), ("qid", DATA.qid), ("scores", DATA.X[:, 0])):
        np.save(workplace / f"{name}.npy", values)
    return workplace


@pytest.mark.parametrize("source", [["--data", "data.txt"], ["--labels", "labels.npy", "--qid", "qid.npy"]])
@pytest.mark.parametrize("scored", [True, False])
def test_it_says_what_the_objective_says(source, scored):
    scores = DATA.X[:, 0] if scored else np.zeros(len(DATA.y))
    expected = get_objective("lambdamart:map").report(scores, DATA.y, DATA.group)
    given = ["report", "--objective", "lambdamart:map", *source, *(["--scores", "scores.npy"] if scored else [])]
    assert run(*given) == f"{expected}\n"
    found = run_json(*given)
    assert found["queries"] == 12
    assert found == {**expected.as_dict(), "query_norms": list(expected.query_norms), "parts": []}


def test_errors_are_one_line():
    assert "pass either --data, or --labels and --qid" in fails("report", "--scores", "scores.npy")
    assert "unknown objective 'foo'" in fails("report", "--objective", "foo", "--data", "data.txt")
    assert "--objective reads the labels of 'x'" in fails("report", "--objective", "ranknet[x]", "--data", "data.txt")
