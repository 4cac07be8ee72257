"""The page on PyTerrier, ir_measures, ranx, MLflow and Weights & Biases. Run by ``make test-serving``."""

import examples
import numpy as np
import pytest

from ltr_objectives import evaluate


@pytest.mark.filterwarnings("ignore")  # warnings that these packages cause among themselves
def test_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for code in examples.blocks("docs/other_tools.md"):
        examples.run(code, names)
    test = names["test"]
    constant = evaluate("ndcg@10", np.zeros(len(test.y)), test.y, test.group)
    assert evaluate("ndcg@10", names["scores"], test.y, test.group) > constant + 0.1
    for query in np.unique(test.qid):
        assert len(np.unique(names["scores"][test.qid == query])) == (test.qid == query).sum(), "ties"
    np.testing.assert_allclose([names["found"][name] for name in names["ours"]], list(names["ours"].values()))
