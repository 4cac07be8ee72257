"""Code of pages on query ids that fall, as those of LETOR files may, where other tests of pages do not run it so."""

import examples
import pytest

from ltr_objectives import datasets


@pytest.fixture
def generated(monkeypatch, tmp_path):
    """Pages generate data with ids that fall, and write to a temporary folder."""
    for library in ("xgboost", "lightgbm", "catboost", "pandas", "sklearn", "scipy"):
        pytest.importorskip(library)
    examples.less_data(monkeypatch)
    monkeypatch.chdir(tmp_path)


def test_the_page_on_clicks(generated):
    if not hasattr(pytest.importorskip("lightgbm").Dataset, "get_position"):
        pytest.skip("before LightGBM 4.1")
    names = {"__name__": "page"}
    for code in examples.blocks("docs/position_bias.md"):
        examples.run(code, names)
    assert names["model"].tree_count_ == 20
    assert names["theta"].max() == 1


@pytest.mark.filterwarnings("ignore:Parameter n_jobs will be ignored")
@pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated")  # what replaces it is new
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # sockets that close late
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of old versions of Dask
def test_the_page_on_several_machines(client, generated, capsys):
    pytest.importorskip("dask.array")
    names = {"__name__": "page"}
    examples.run(examples.block("docs/distributed.md", "LocalCluster"), names)
    data = datasets.make_ranking_fold((24, 12, 12), features=10)
    for train in (names["in_xgboost"], names["in_lightgbm"]):
        assert 0.3 < train(client, *data) < 1
