"""Lexical features of texts against their formulas, and folds that studies read."""

import gzip
import json
import math
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest
from commands import benchmark

from benchmarks import folds, search_text
from ltr_objectives import LTRError

QUESTIONS = {f"which {word} is at {n} ?": word for n, word in enumerate(("cat", "dog", "owl", "fox", "bee", "ant"))}
NAMES = list(QUESTIONS.values())


@pytest.fixture(autouse=True)
def plain_words(monkeypatch):
    monkeypatch.setattr(search_text, "_stem", lambda word: word)


def sentences():
    """Yield sentences: the first of three answers each question; the last question has no answer."""
    for question, word in QUESTIONS.items():
        for place in range(3):
            yield question, f"the {word} {'sleeps ' * place}here", int(place == 0 and word != "ant")


def write_all(folder):
    """Write each data set in the files of its publisher."""
    lines = list(sentences())
    for part, rows in (("dev", lines[:9]), ("test", lines[9:])):
        text = "".join(f"{question}\t{sentence}\t{label}\n" for question, sentence, label in rows)
        (folder / f"selqa-ass-{part}.tsv").write_text(text)
    for part, rows in (("train", lines[:6]), ("dev", lines[6:9]), ("test", lines[9:])):
        (folder / part).mkdir()
        for name, column in zip(("a.toks", "b.toks", "sim.txt"), zip(*rows, strict=True), strict=True):
            (folder / part / name).write_text("".join(f"{cell}\n" for cell in column))
    answers = {str(i): {"en": sentence} for i, (_, sentence, _) in enumerate(lines)}
    items = {str(i): {"en": q, "answers": [str(3 * i)], "negatives": [str(3 * i), str(3 * i + 1)]}
             for i, q in enumerate(QUESTIONS)}  # fmt: skip
    for name, document in {"answers": answers, "train": items, "valid": {}, "test": {}}.items():
        (folder / f"{name}.json.gz").write_bytes(gzip.compress(json.dumps(document).encode()))
    with zipfile.ZipFile(folder / "nfcorpus.zip", "w") as archive:
        of = {"corpus": [{"_id": f"d{i}", "title": s, "text": s} for i, (_, s, _) in enumerate(lines)],
              "queries": [{"_id": f"q{i}", "text": q} for i, q in enumerate(QUESTIONS)]}  # fmt: skip
        for name, documents in of.items():
            archive.writestr(f"nfcorpus/{name}.jsonl", "".join(json.dumps(each) + "\n" for each in documents))
        for part in ("train", "dev", "test"):
            judged = "".join(f"q{i}\td{3 * i}\t1\n" for i in range(5)) if part == "train" else ""
            archive.writestr(f"nfcorpus/qrels/{part}.tsv", "query-id\tcorpus-id\tscore\n" + judged)
    rows = [(i, q, s, 1.0 + y) for i, (q, s, y) in enumerate(lines)]
    table = pd.DataFrame(rows, columns=["product_uid", "search_term", "product_title", "relevance"])
    table.to_csv(folder / "train.csv.zip", index=False)


@pytest.mark.parametrize("data", search_text.READERS)
def test_each_data_set_becomes_five_folds(data, tmp_path):
    write_all(tmp_path)
    queries = {}
    for half in ("", "even", "odd"):
        out = tmp_path / f"{data}{half}"
        printed = benchmark("search-text", data, tmp_path, "--half", half, "--out", out)
        found = [fold.load() for fold in folds.folds_of(str(tmp_path / data), [0])]
        queries[half] = int(printed.split(", ")[-3].split()[0])
    assert len(found) == 5
    assert queries[""] == queries["even"] + queries["odd"] == (6 if data in ("insuranceqa", "homedepot") else 5)
    assert sum(len(fold.test.group) for fold in found) == queries[""]
    names = (tmp_path / data / "features.txt").read_text().split()
    assert found[0].train.X.shape[1] == len(names)


def test_features_are_those_of_their_formulas():
    texts = search_text.Texts(["red cat", "old dog 7"], {"text": ["red red cat sat", "a dog 7 ran", "birds"]},
                              np.array([[0, 0], [0, 1], [1, 1]]), np.array([1, 0, 1]))  # fmt: skip
    X, names = search_text.features(texts)
    of = dict(zip(names, X.T, strict=True))
    idf, mean = math.log1p((3 - 1 + 0.5) / 1.5), 9 / 3
    norm = 1.2 * (0.25 + 0.75 * 4 / mean)
    first = idf * (2 * 2.2 / (2 + norm) + 2.2 / (1 + norm))
    assert of["text_bm25_0.75"] == pytest.approx([first, 0, 2 * idf * 2.2 / (1 + norm)])
    dirichlet = math.log1p(2 / (1000 * 2 / 9)) + math.log1p(1 / (1000 / 9)) + 2 * math.log(1000 / 1004)
    assert of["text_dirichlet"][0] == pytest.approx(dirichlet, rel=1e-4)
    assert of["text_matched"].tolist() == [2, 0, 2]
    assert of["text_matched_share"] == pytest.approx([1, 0, 2 / 3])
    assert of["text_tf"].tolist() == [3, 0, 2]
    weights = np.array([1 + math.log(2), 1, 1])
    assert of["text_cosine"][0] == pytest.approx(weights[:2].sum() / np.linalg.norm(weights) / math.sqrt(2), rel=1e-5)
    assert of["text_bigrams_share"] == pytest.approx([1, 0, 0.5])
    assert of["text_phrase"].tolist() == [1, 0, 0]
    assert of["text_last_word_at"].tolist() == [2, 999, 2]
    assert of["text_numbers"].tolist() == [0, 0, 1]
    assert np.isfinite(X).all()


def test_the_stemmer_that_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "snowballstemmer", None)
    search_text._stemmer.cache_clear()
    with pytest.raises(LTRError, match="snowballstemmer"):
        search_text._stemmer()
