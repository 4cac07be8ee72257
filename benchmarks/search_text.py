"""``python -m benchmarks search-text``: the data of search and question answering, made from texts that you download.

Features are lexical and read no label. Snowball's English stemmer is needed: ``pip install snowballstemmer``.
"""

import gzip
import json
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.sparse.linalg import svds
from typer import Argument, Option, echo

from ltr_objectives.checks import check_choice
from ltr_objectives.errors import LTRError, require

CHUNK = 200_000  # pairs
DIMENSIONS = 64  # of latent semantic analysis
FOLDS = 5
Tokens = Callable[[str], list[str]]


class Texts(NamedTuple):
    """Queries, the fields of documents, and the documents of each query with their labels."""

    queries: list[str]
    fields: dict[str, list[str]]
    pairs: np.ndarray  # of a query and a document, by their numbers
    labels: np.ndarray
    places: np.ndarray | None = None  # of the document in the original list, which is a feature


def words(text: str) -> list[str]:
    """Split a text into words in lower case, and numbers.

    >>> words("Fits 2.5-inch Pipes")
    ['fits', '2.5', 'inch', 'pipes']
    """
    return re.findall(r"[a-z0-9]+(?:\.[0-9]+)?", text.lower())


@lru_cache(1)
def _stemmer() -> Any:
    try:
        return import_module("snowballstemmer").stemmer("english")
    except ModuleNotFoundError:
        raise LTRError("the stems of words need Snowball: pip install snowballstemmer") from None


@lru_cache(None)
def _stem(word: str) -> str:
    return _stemmer().stemWord(word)


def stems(text: str) -> list[str]:
    """Split a text into the stems of its words."""
    return [_stem(word) for word in words(text)]


def bigrams(text: str) -> list[str]:
    """Return pairs of neighbouring stems."""
    found = stems(text)
    return [" ".join(pair) for pair in pairwise(found)]


def trigrams(text: str) -> list[str]:
    """Return the runs of three characters of the words."""
    joined = f" {' '.join(words(text))} "
    return [joined[i : i + 3] for i in range(len(joined) - 2)]


def count(texts: Sequence[str], split: Tokens, known: dict[str, int] | None = None) -> tuple[Any, dict[str, int]]:
    """Count tokens in a matrix with a row for each text; tokens that are not in ``known`` are left out of it."""
    numbers = {} if known is None else known
    rows, columns = [], []
    for row, text in enumerate(texts):
        for token in split(text):
            if known is None or token in known:
                rows.append(row)
                columns.append(numbers.setdefault(token, len(numbers)))
    ones = np.ones(len(rows), np.float32)
    return sparse.csr_matrix((ones, (rows, columns)), (len(texts), len(numbers)), dtype=np.float32), numbers


def _with(matrix: Any, data: np.ndarray) -> Any:
    """Return the matrix with other values at the same places."""
    return sparse.csr_matrix((data.astype(np.float32), matrix.indices, matrix.indptr), matrix.shape)


def _ones(matrix: Any) -> Any:
    return _with(matrix, np.ones_like(matrix.data))


def _unit(matrix: Any) -> Any:
    norms = np.sqrt(np.asarray(matrix.multiply(matrix).sum(1)).ravel())
    return (sparse.diags(1 / np.maximum(norms, 1e-12)).astype(np.float32) @ matrix).tocsr()


def _products(queries: Any, documents: Any, pairs: np.ndarray) -> np.ndarray:
    """Return the product of the row of the query and the row of the document, for each pair."""
    chunks = (pairs[start : start + CHUNK] for start in range(0, len(pairs), CHUNK))
    found = [np.asarray(queries[q].multiply(documents[d]).sum(1)).ravel() for q, d in (chunk.T for chunk in chunks)]
    return np.concatenate(found).astype(np.float32)


def _frequency(documents: Any) -> np.ndarray:
    """Return the number of documents with each token."""
    return np.maximum(np.asarray((documents > 0).sum(0)).ravel(), 1)


def _bm25(documents: Any, sizes: np.ndarray, k1: float, b: float) -> Any:
    of = np.repeat(sizes, np.diff(documents.indptr))
    tf = documents.data
    return _with(documents, tf * (k1 + 1) / (tf + k1 * (1 - b + b * of / max(sizes.mean(), 1))))


def features(texts: Texts) -> tuple[np.ndarray, list[str]]:
    """Return lexical features of each pair, by field, and their names."""
    q = texts.pairs[:, 0]
    length = np.array([len(words(text)) for text in texts.queries], np.float32)[q]
    found = {"query_words": length, "query_characters": np.array([len(text) for text in texts.queries])[q]}
    fields = {field: _of_field(texts.queries, of, texts.pairs, length) for field, of in texts.fields.items()}
    for field, (columns, _) in fields.items():
        found |= {f"{field}_{name}": values for name, values in columns.items()}
    *_, (_, idf_in_last) = fields.values()
    each = np.split(idf_in_last.data, idf_in_last.indptr[1:-1])
    found["query_idf_min"] = np.array([part.min(initial=np.inf) if len(part) else 0.0 for part in each])[q]
    found["query_idf_max"] = np.array([part.max(initial=0.0) for part in each])[q]
    if texts.places is not None:
        found["place"] = texts.places
    return np.column_stack([np.asarray(values, np.float32) for values in found.values()]), list(found)


def _of_field(
    queries: Sequence[str], documents: Sequence[str], pairs: np.ndarray, length: np.ndarray
) -> tuple[dict[str, np.ndarray], Any]:
    """Return the features of a field, and the idf of the words of each query in it."""
    columns, by_idf = _of_stems(queries, documents, pairs, length)
    asked, two = _counts(queries, documents, bigrams)
    columns["bigrams_share"] = _products(_ones(asked), _ones(two), pairs) / np.maximum(length - 1, 1)
    asked, three = _counts(queries, documents, trigrams)
    rare = sparse.diags(np.log(len(documents) / _frequency(three)).astype(np.float32))
    columns["trigrams"] = _products(_unit((_ones(asked) @ rare).tocsr()), _unit((three @ rare).tocsr()), pairs)
    return columns | _of_order(queries, documents, pairs), by_idf


def _counts(queries: Sequence[str], documents: Sequence[str], split: Tokens) -> tuple[Any, Any]:
    """Count the tokens of documents, and those of them that queries have; queries come first."""
    found, known = count(documents, split)
    return count(queries, split, known)[0], found


def _of_stems(
    queries: Sequence[str], documents: Sequence[str], pairs: np.ndarray, length: np.ndarray
) -> tuple[dict[str, np.ndarray], Any]:
    """Return the features of single words, and the idf of those of each query."""
    q, d = pairs.T
    asked, tf = _counts(queries, documents, stems)
    n, df, sizes = tf.shape[0], _frequency(tf), np.asarray(tf.sum(1)).ravel()
    idf = np.log1p((n - df + 0.5) / (df + 0.5)).astype(np.float32)
    in_query, in_document = _ones(asked), _ones(tf)
    by_idf = (in_query @ sparse.diags(idf)).tocsr()
    total = np.maximum(np.asarray(by_idf.sum(1)).ravel(), 1e-9)[q]
    usual, flat = (_products(by_idf, _bm25(tf, sizes, *of), pairs) for of in ((1.2, 0.75), (0.6, 0.2)))
    matched, frequency = _products(in_query, in_document, pairs), _products(in_query, tf, pairs)
    weighted, asked_weighted = (
        _unit((_with(each, 1 + np.log(each.data)) @ sparse.diags(idf)).tocsr()) for each in (tf, asked)
    )
    columns = {
        "bm25_0.75": usual, "bm25_share": usual / total, "bm25_0.2": flat,
        "dirichlet": _dirichlet(asked, tf, sizes, pairs), "matched": matched,
        "matched_share": matched / np.maximum(length, 1), "idf_share": _products(by_idf, in_document, pairs) / total,
        "tf": frequency, "tf_share": frequency / np.maximum(sizes[d], 1),
        "cosine": _products(asked_weighted, weighted, pairs), "words": sizes[d],
        "lsa": _latent(asked_weighted, weighted, pairs),
    }  # fmt: skip
    return columns, by_idf


def _dirichlet(asked: Any, tf: Any, sizes: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Return the likelihood of a query, smoothed with the words of all documents."""
    q, d = pairs.T
    share = np.asarray(tf.sum(0)).ravel() / tf.sum()
    smoothed = _with(tf, np.log1p(tf.data / (1000 * share[tf.indices])))
    known = np.asarray(asked.sum(1)).ravel()
    return _products(asked, smoothed, pairs) + known[q] * np.log(1000 / (sizes + 1000))[d]


def _latent(queries: Any, documents: Any, pairs: np.ndarray) -> np.ndarray:
    """Return the cosine of latent semantic analysis."""
    most = min(DIMENSIONS, *(n - 1 for n in documents.shape))
    u, s, vt = svds(documents.astype(np.float64), most, random_state=0)
    left, right = (each / np.maximum(np.linalg.norm(each, axis=1, keepdims=True), 1e-9)
                   for each in (queries @ vt.T, u * s))  # fmt: skip
    parts = np.array_split(pairs, max(len(pairs) // CHUNK, 1))
    return np.concatenate([np.einsum("ij,ij->i", left[part[:, 0]], right[part[:, 1]]) for part in parts])


def _of_order(queries: Sequence[str], documents: Sequence[str], pairs: np.ndarray) -> dict[str, np.ndarray]:
    """Return features of the order of words: the whole query, its last word, its numbers."""
    asked, texts = [stems(text) for text in queries], [stems(text) for text in documents]
    phrases, joined = [" ".join(text) for text in asked], [" ".join(text) for text in texts]
    number, numbers = ([{w for w in words(text) if w[0].isdigit()} for text in of] for of in (queries, documents))
    found = np.zeros((4, len(pairs)), np.float32)
    for i, (q, d) in enumerate(pairs):
        last = asked[q][-1] if asked[q] else None
        at = texts[d].index(last) if last in texts[d] else None
        matched = len(number[q] & numbers[d]) - len(number[q] - numbers[d])
        found[:, i] = phrases[q] in joined[d], at is not None, 999 if at is None else at, matched
    return dict(zip(("phrase", "last_word", "last_word_at", "numbers"), found, strict=True))


def _answered(texts: Texts) -> Texts:
    """Leave out the queries without a relevant document."""
    kept = np.isin(texts.pairs[:, 0], texts.pairs[texts.labels > 0, 0])
    places = None if texts.places is None else texts.places[kept]
    return texts._replace(pairs=texts.pairs[kept], labels=texts.labels[kept], places=places)


def _sentences(lines: Iterator[tuple[str, str, int]]) -> Texts:
    """Return the questions that have an answer, and their sentences."""
    asked: dict[str, int] = {}
    texts: dict[str, int] = {}
    pairs: list[tuple[int, int]] = []
    labels, places, last = list[int](), list[int](), ""
    for question, sentence, label in lines:
        places.append(places[-1] + 1 if places and question == last else 0)
        last = question
        pairs.append((asked.setdefault(question, len(asked)), texts.setdefault(sentence, len(texts))))
        labels.append(label)
    found = Texts(list(asked), {"sentence": list(texts)}, np.array(pairs), np.array(labels), np.array(places))
    return _answered(found)


def selqa(source: Path) -> Texts:
    """Read ``selqa-ass-dev.tsv`` and ``selqa-ass-test.tsv`` of SelQA."""
    parts = ((source / f"selqa-ass-{part}.tsv").read_text("utf8").splitlines() for part in ("dev", "test"))
    rows = (line.split("\t") for part in parts for line in part)
    return _sentences((question, sentence, int(label)) for question, sentence, label in rows)


def wikiqa(source: Path) -> Texts:
    """Read the folders ``train``, ``dev`` and ``test`` of castorini's WikiQA."""

    def lines() -> Iterator[tuple[str, str, int]]:
        for part in ("train", "dev", "test"):
            files = ((source / part / name).read_text("utf8").splitlines() for name in ("a.toks", "b.toks", "sim.txt"))
            yield from ((q, s, int(float(label))) for q, s, label in zip(*files, strict=True))

    return _sentences(lines())


def insuranceqa(source: Path) -> Texts:
    """Read ``answers.json.gz``, ``train.json.gz``, ``valid.json.gz`` and ``test.json.gz`` of insuranceqa-data.

    A question has its right answers, and 40 of the wrong ones that were retrieved for it.
    """
    answers, *parts = (json.loads(gzip.decompress((source / f"{name}.json.gz").read_bytes()))
                       for name in ("answers", "train", "valid", "test"))  # fmt: skip
    place = {key: i for i, key in enumerate(answers)}
    rng, asked, pairs, labels = np.random.default_rng(0), list[str](), list[tuple[int, int]](), list[int]()
    for item in (item for part in parts for item in part.values()):
        right = [place[key] for key in dict.fromkeys(item["answers"])]
        wrong = [place[key] for key in dict.fromkeys(item["negatives"]) if place[key] not in right]
        wrong = list(rng.choice(wrong, min(40, len(wrong)), replace=False))
        pairs += [(len(asked), document) for document in right + wrong]
        labels += [1] * len(right) + [0] * len(wrong)
        asked.append(" ".join(item["en"].split()))
    return Texts(asked, {"answer": [a["en"] for a in answers.values()]}, np.array(pairs), np.array(labels))


def nfcorpus(source: Path) -> Texts:
    """Read ``nfcorpus.zip`` of BEIR; the documents of a query are the first 100 by BM25."""
    archive = zipfile.ZipFile(source / "nfcorpus.zip")
    documents, queries = ([json.loads(line) for line in archive.open(f"nfcorpus/{name}.jsonl")]
                          for name in ("corpus", "queries"))  # fmt: skip
    judged = set()
    for part in ("train", "dev", "test"):
        rows = [line.decode().split() for line in archive.open(f"nfcorpus/qrels/{part}.tsv")][1:]
        judged |= {(query, document) for query, document, label in rows if int(label) > 0}
    titles, texts, asked = ([each[key] for each in of] for of, key in
                            ((documents, "title"), (documents, "text"), (queries, "text")))  # fmt: skip
    tf, vocabulary = count([f"{title} {title} {text}" for title, text in zip(titles, texts, strict=True)], stems)
    df, sizes = np.asarray((tf > 0).sum(0)).ravel(), np.asarray(tf.sum(1)).ravel()
    idf = sparse.diags(np.log1p((len(titles) - df + 0.5) / (df + 0.5)))
    scores = (count(asked, stems, vocabulary)[0] @ idf @ _bm25(tf, sizes, 1.2, 0.75).T).tocsr()
    pairs = []
    for query in range(len(asked)):
        row = scores.getrow(query)
        pairs += [(query, document) for document in row.indices[np.argsort(-row.data, kind="stable")[:100]]]
    labels = [(queries[query]["_id"], documents[document]["_id"]) in judged for query, document in pairs]
    return _answered(Texts(asked, {"title": titles, "text": texts}, np.array(pairs), np.array(labels, int)))


def homedepot(source: Path) -> Texts:
    """Read ``train.csv.zip`` of the Home Depot product search of Kaggle; labels 0 to 4 are the raters' mean.

    The study had 22 features of other participants too.
    """
    data = pd.read_csv(source / "train.csv.zip", encoding="latin-1")
    queries, query = np.unique(data["search_term"].to_numpy(str), return_inverse=True)
    _, first, product = np.unique(data["product_uid"], return_index=True, return_inverse=True)
    titles = data["product_title"].to_numpy(str)[first]
    labels = np.round((data["relevance"].to_numpy() - 1) * 2).astype(int)
    return Texts(list(queries), {"title": list(titles)}, np.column_stack([query, product]), labels)


READERS = {each.__name__: each for each in (homedepot, insuranceqa, nfcorpus, selqa, wikiqa)}


def prepared(texts: Texts) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[str]]:
    """Return features, labels, query ids and names; the documents of a query are in random order."""
    X, names = features(texts)
    qid = texts.pairs[:, 0]
    order = np.lexsort((np.random.default_rng(0).random(len(qid)), qid))
    return X[order], texts.labels[order], qid[order], names


def write_folds(X: np.ndarray, y: np.ndarray, qid: np.ndarray, out: Path) -> None:
    """Write five folds of queries as compressed LETOR text: three parts train, one is validation, one is test."""
    queries, query = np.unique(qid, return_inverse=True)
    part = np.random.default_rng(5).permutation(len(queries)) % FOLDS
    lines = [
        f"{y[i]} qid:{query[i] + 1} " + " ".join(f"{j + 1}:{v:.6g}" for j, v in enumerate(X[i]) if v == v) + "\n"
        for i in range(len(y))
    ]
    for fold in range(FOLDS):
        distance = (part[query] - fold) % FOLDS
        folder = out / f"Fold{fold + 1}"
        folder.mkdir(parents=True, exist_ok=True)
        for name, rows in (("test", distance == 0), ("vali", distance == 1), ("train", distance > 1)):
            with gzip.open(folder / f"{name}.txt.gz", "wt", compresslevel=1) as file:
                file.writelines(lines[i] for i in np.flatnonzero(rows))


def search_text(
    data: Annotated[str, Argument(help=f"Any of {', '.join(READERS)}.")],
    source: Annotated[Path, Argument(help="Folder with the files of its publisher.")],
    half: Annotated[str, Option(help="even or odd: only the queries whose CRC-32 of the id is so.")] = "",
    out: Annotated[Path, Option(help="Folder for the folds.")] = Path("results/search_text"),
) -> None:
    """Make folds of search or question answering from texts, for ``quality --data``."""
    check_choice("data", data, tuple(READERS))
    check_choice("half", half, ("", "even", "odd"))
    require(source.is_dir(), f"{source} is no folder")
    X, y, qid, names = prepared(READERS[data](source))
    if half:
        kept = np.array([zlib.crc32(str(each).encode()) % 2 == (half == "odd") for each in qid])
        X, y, qid = X[kept], y[kept], qid[kept]
    write_folds(X, y, qid, out)
    (out / "features.txt").write_text("\n".join(names) + "\n")
    echo(f"written: {out}, {len(np.unique(qid)):,} queries, {len(y):,} rows, {len(names)} features")
