"""``python -m benchmarks publish``: write tables and pictures of the pages anew, from benchmarks/results and a page."""

import json
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
from rich.console import Console
from typer import Option, echo

from benchmarks.cells import write_whole
from benchmarks.figures import (
    TITLES,
    click_dots,
    front,
    lead_dots,
    propensities,
    pushes,
    questions,
    seconds,
    write_figure,
)
from benchmarks.provenance import provenance
from ltr_objectives import LambdaMART
from ltr_objectives._files import replacing

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PICTURES = ROOT / "docs" / "pictures"
PAGES = (ROOT / "README.md", RESULTS / "README.md", *sorted((ROOT / "docs").glob("*.md")))
PARTS = {  # of a study, by the beginning of the title; the table and an explanation follow
    "lead": "**What our names give",
    "objectives": "**Each objective",
    "equivalence": "**Equivalence",
}
LABELS = (0, 2, 1, 0)  # of a ranked list
QUESTIONS = {  # about the metric; what is trained for it, and its page of the site
    "clicks instead of judgements?": ("any of these, position=", "position_bias.html"),
    "several goals?": ("a sum of objectives, or bounds=", "several_goals.html"),
    "own metric, gains, discounts?": ("YetiLoss for the metric", "write_your_own.html"),
    "a threshold on grades?": ("YetiLoss for NDCG + for it", "metrics.html#relevant-or-not"),
    "NDCG, MAP, MRR, ERR, P@k": ("YetiLoss for NDCG", "api/YetiLoss.html"),
}
BLOCK = re.compile(r"(<!-- table: ([\w/]+) -->\n).*?(<!-- end -->)", re.S)
NUMBER = re.compile(r"(more than )?[+-]?\d[\d,.]*( \(.+\))?")  # perhaps with an error or a range
Document = dict[str, Any]
Lines = list[list[str]]  # the first is the head


def kernels(document: Document) -> Lines:
    """Tabulate an iteration's gradients, in nanoseconds a row."""
    lines = [["gradients of", "ours, ns a row", "the same for x86-64-v3", "against", "its, ns a row", "its / ours"]]
    for r in document["results"]:
        ours, baseline, its = (
            _few(1e6 * r[key] / r["rows"]) if (r.get(key) or 0.0) > 0.0 else ""
            for key in ("ours_ms", "baseline_ms", "reference_ms")
        )
        lines.append([r["what"], ours, baseline, r["against"], its, f"{r['ratio']:.1f}"])
    return lines


def training(document: Document) -> Lines:
    """Tabulate whole trainings; ratios are medians, with their range, and milliseconds are those of a tree."""
    lines = [["library", "objective", "s: least, median", "times the library's own", "times its floor", "trees, ms",
              "interface, ms", "gradients, ms"]]  # fmt: skip
    for r in document["results"]:
        above = {base: _range(most) for base, most in r["over"].items()}
        own = "; ".join(f"{base} {text}" for base, text in list(above.items())[1:] if r["objective"] not in r["over"])
        took = f"{min(r['seconds']):.1f}, {np.median(r['seconds']):.1f}"
        floor = _range(r["over_floor"]) if "over_floor" in r else ""
        ms = {
            key: 1e3 * float(np.median(r[key])) / document["trees"]
            for key in ("seconds", "interface", "alone")
            if key in r
        }
        parts = [""] * 3
        if "interface" in ms:
            trees = ms.get("alone", ms["interface"])
            interface = f"{ms['interface'] - trees:.1f}" if "alone" in ms else "with the trees"
            parts = [f"{trees:.0f}", interface, f"{ms['seconds'] - ms['interface']:.1f}"]
        lines.append([r["library"], r["objective"], took, own, floor, *parts])
    return lines


def evaluation(document: Document) -> Lines:
    """Tabulate the time of a metric in a training."""
    lines = [["library", "its metric", "training without, s", "its metric, ms a tree", "ours, ms a tree", "ours / its"]]
    for r in document["results"]:
        less = {key: np.array(r[key]) - np.array(r["none"]) for key in ("own", "ours")}
        ms = [f"{1e3 * float(np.median(less[key])) / document['trees']:.1f}" for key in ("own", "ours")]
        ratio = _range(np.quantile(less["ours"] / less["own"], (0, 0.5, 1)))
        lines.append([r["library"], r["metric"], f"{np.median(r['none']):.1f}", *ms, ratio])
    return lines


def _range(most: Any) -> str:
    return f"{most[1]:.2f} ({most[0]:.2f} to {most[2]:.2f})"


def scaling(document: Document) -> Lines:
    """Tabulate time and memory by rows."""
    more = list(document["results"][0]["modelled"])
    lines = [["gradients of", "rows", "1 thread, ms", f"{document['threads']} threads, ms", "times linear",
              *(f"{p} threads, modelled, ms" for p in more), "bytes a row"]]  # fmt: skip
    for r in document["results"]:
        one, all_, *by_model = (f"{1e3 * s:.1f}" for s in (r["one_thread"], r["seconds"], *r["modelled"].values()))
        lines.append(
            [r["objective"], f"{r['rows']:,}", one, all_, f"{r['linear']:.2f}", *by_model, f"{r['bytes_a_row']:.0f}"]
        )
    return lines


def startup(document: Document) -> Lines:
    """Tabulate the time to the first gradient in new processes."""
    lines = [["objective", "first gradient, s", "the same, compiling, s"]]
    lines += [[r["objective"], f"{r['warm']:.2f}", f"{r['cold']:.2f}"] for r in document["results"]]
    return [*lines, ["(import alone)", f"{document['import']:.2f}", ""]]


def long_lists(document: Document) -> Lines:
    """Tabulate processor time of single lists by length, and memory at the largest length that was run."""
    by: dict[str, dict[int, dict[str, Any]]] = {}
    for r in document["long"]:
        by.setdefault(r["objective"], {})[r["rows"]] = r
    sizes = list(next(iter(by.values())))
    lines = [["one list", *(f"{rows:,} documents, s" for rows in sizes), "bytes a row"]]
    for name, found in by.items():
        cells = [f"{'' if r['bytes_a_row'] is not None else 'more than '}{_few(r['seconds'])}" for r in found.values()]
        memory = [r["bytes_a_row"] for r in found.values() if r["bytes_a_row"] is not None]
        lines.append([name, *cells, f"{memory[-1]:.0f}"])
    return lines


def one_list(document: Document) -> Lines:
    """Tabulate the average precision of test data that are one list."""
    lines = [["objective", "seed of the data", "average precision", "trees"]]
    return lines + [[r["objective"], str(r["seed"]), f"{r['map']:.3f}", str(r["trees"])] for r in document["results"]]


def money(document: Document) -> Lines:
    """Tabulate the money that objectives earn more than that for orders, in percent, with intervals."""
    found: dict[tuple[str, ...], dict[str, list[str]]] = {}
    for r in document["results"]:
        cells = found.setdefault((r["orders"], r["labels"], r["trained"]), {}).setdefault(r["library"], [])
        cells.append(f"{r['percent']:+.1f} ({r['low']:+.1f} to {r['high']:+.1f})")
    libraries = list(next(iter(found.values())))
    lines = [["orders", "labels", "trained", *(f"{library}, %" for library in libraries)]]
    return lines + [[*key, *("; ".join(by[library]) for library in libraries)] for key, by in found.items()]


def retrain(document: Document) -> Lines:
    """Tabulate the metric of each way to renew a model, its difference from the first way, and seconds a week."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for r in document["results"]:
        text = f"{r['metric']:.3f}"
        if r["way"] != document["against"]:
            text += f", {r['difference']:+.3f} ({r['low']:+.3f} to {r['high']:+.3f})"
        found.setdefault((r["drift"], r["way"]), {})[r["library"]] = text + (
            f"; {_few(r['seconds'])} s" if r["seconds"] else ""
        )
    libraries = list(next(iter(found.values())))
    lines = [["drift", "each week", *libraries]]
    return lines + [[*key, *(by[library] for library in libraries)] for key, by in found.items()]


def clicks(document: Document) -> Lines:
    """Tabulate the lead of `position=` over each rival: the mean over the worlds, its error, and the worst world."""
    leads = click_leads(document)
    lines = [["library", "`position=` minus", *(f"{at}: mean (error), worst world" for at in leads["at"].unique())]]
    for names, of in leads.groupby(["library", "method"], sort=False):
        cells = (f"{x.mean:+.1f} ({x.error:.1f}), {x.world} {x.worst:+.0f}" for x in of.itertuples())
        lines.append([*map(str, names), *cells])
    return lines


def click_leads(document: Document) -> pd.DataFrame:
    """Return the true NDCG@10 of `position=` minus that of each rival, in thousandths, rounded as it is published.

    The error is over seeds, and ``worst`` the mean of a world.
    """
    rows = []
    for library, of in _of_clicks(document).groupby("library", sort=False):
        ours = of.xs("position=", level="method").droplevel("library")
        for method in of.index.unique("method").drop("position="):
            gap = 1000 * (ours - of.xs(method, level="method").droplevel("library"))
            for at in gap:
                by_seed, by_world = (gap[at].groupby(level).mean() for level in ("seed", "world"))
                error = round(float(by_seed.std() / len(by_seed) ** 0.5), 1)
                worst = round(float(by_world.min()), 0)
                rows.append([library, method, at, round(float(by_seed.mean()), 1), error, by_world.idxmin(), worst])
    return pd.DataFrame(rows, columns=["library", "method", "at", "mean", "error", "world", "worst"])


def clicks_by_world(document: Document) -> Lines:
    """Tabulate the true NDCG@10 of each correction in LightGBM after 100 rounds, by world."""
    of = _of_clicks(document).xs("lightgbm", level="library")["100 rounds"]
    table = of.groupby(["method", "world"], sort=False).mean().unstack("method")
    table.loc["mean"] = table.mean()
    return [["world", *table.columns], *([name, *(f"{x:.3f}" for x in row)] for name, row in table.iterrows())]


def clicks_criteria(document: Document) -> Lines:
    """Tabulate how often a criterion of clicks orders two trainings of a world and seed as the true grades do."""
    at = document["rounds"].index(100)
    right: dict[tuple[Any, ...], list[list[float]]] = {}
    for r in document["results"]:
        cell = right.setdefault((r["library"], r["world"], r["seed"]), [])
        cell.append([r[name][at] for name in ("ndcg", "clicks", "likelihood")])
    lines: dict[str, list[np.ndarray]] = {}
    for (library, *_), values in right.items():
        gaps = np.array(values)[:, None] - np.array(values)
        first, second = np.triu_indices(len(values), 1)
        signs = np.sign(gaps[first, second])
        lines.setdefault(library, []).append(signs[:, 1:] == signs[:, :1])
    head = [["library", "NDCG@10 of clicks, %", "likelihood of clicks with offsets, %"]]
    return head + [[name, *(f"{100 * x:.0f}" for x in np.concatenate(all_).mean(0))] for name, all_ in lines.items()]


def _of_clicks(document: Document) -> pd.DataFrame:
    """Return the true NDCG@10 after 30 and 100 rounds, and after those with the best likelihood of held-out clicks."""
    short, long = (document["rounds"].index(n) for n in (30, 100))
    rows = [
        [*(r[name] for name in ("library", "method", "world", "seed")),
         *(r["ndcg"][at] for at in (short, long, int(np.argmax(r["likelihood"]))))]
        for r in document["results"]
    ]  # fmt: skip
    names = ["library", "method", "world", "seed"]
    return pd.DataFrame(rows, columns=[*names, "30 rounds", "100 rounds", "stopped"]).set_index(names)


def latency(document: Document) -> Lines:
    """Tabulate the milliseconds of a request."""
    found: dict[str, dict[str, str]] = {}
    for r in document["results"]:
        found.setdefault(r["way"], {})[r["library"]] = _few(r["ms"])
    libraries = list(next(iter(found.values())))
    lines = [["a request of 30 documents", *(f"{library}, ms" for library in libraries)]]
    return lines + [[way, *(by.get(library, "") for library in libraries)] for way, by in found.items()]


def variance(document: Document) -> Lines:
    """Tabulate the numbers of independent draws whose gradients vary as those of stratified ones."""
    found: dict[tuple[str, str], dict[int, str]] = {}
    for r in document["results"]:
        found.setdefault((r["objective"], str(r["documents"])), {})[r["draws"]] = f"{r['as_many']:.1f}"
    draws = list(next(iter(found.values())))
    return [["objective", "documents", *(f"{n} draws" for n in draws)],
            *([*key, *(by[n] for n in draws)] for key, by in found.items())]  # fmt: skip


def _few(seconds: float) -> str:
    """Format seconds to two digits, without an exponent.

    >>> _few(0.0000123), _few(0.456), _few(12.3), _few(4567.8)
    ('0.000012', '0.46', '12', '4,600')
    """
    rounded = float(f"{seconds:.2g}")
    return f"{rounded:,.{max(0, 1 - math.floor(math.log10(rounded)))}f}"


TABLES: dict[str, Callable[[Document], Lines]] = {
    "kernels": kernels, "training": training, "evaluation": evaluation,
    "scaling": scaling, "scaling/long": long_lists, "startup": startup, "one_list": one_list, "money": money,
    "retrain": retrain, "latency": latency, "variance": variance,
    "clicks": clicks, "clicks/worlds": clicks_by_world, "clicks/criteria": clicks_criteria,
}  # fmt: skip


def pipe_table(lines: Sequence[Sequence[str]], right: Sequence[bool] | None = None) -> str:
    """Format a head and its lines in Markdown; without ``right``, columns of numbers are on the right.

    >>> print(pipe_table([["objective", "map"], ["yetirank", "0.5"]]))
    | objective | map |
    | --- | ---: |
    | yetirank | 0.5 |
    """
    if right is None:
        right = [all(NUMBER.fullmatch(cell) for cell in column if cell) for column in zip(*lines[1:], strict=True)]
    rule = ["---:" if number else "---" for number in right]
    return "\n".join("| " + " | ".join(line) + " |" for line in (lines[0], rule, *lines[1:]))


def save(name: str, document: Document, out: Path, console: Console) -> None:
    """Print the table called ``name``; write the document, with the command and the versions, to ``name.json``."""
    console.print(pipe_table(TABLES[name](document)), soft_wrap=True, markup=False)
    path = out / f"{name}.json"
    write_whole(path, {**provenance(), **document}, indent=1)
    console.print(f"written: {path}")


def block(name: str, results: Path) -> str:
    """Return the table called ``name``, and how it was made.

    A study is a folder with the tables of ``PARTS``, such as ``real/lead``. ``scaling/long`` is a second table of
    ``scaling.json``.
    """
    folder, _, part = name.partition("/")
    if part == "short" and (results / folder / f"{folder}.csv").exists():
        document = json.loads((results / folder / "study.json").read_text())
        body = pipe_table(equivalence_table(pd.read_csv(results / folder / f"{folder}.csv")))
    elif (results / folder).is_dir():
        document = json.loads((results / folder / "study.json").read_text())
        paragraphs = (results / folder / "summary.md").read_text().strip().split("\n\n")
        first = next(i for i, text in enumerate(paragraphs) if text.startswith(PARTS[part]))
        body = "\n\n".join(paragraphs[first : first + 3])
    else:
        document = json.loads((results / f"{folder}.json").read_text())
        body = pipe_table(TABLES[name](document))
    versions = ", ".join(f"{package} {version}" for package, version in document["versions"].items())
    kept = "studies" not in document or "=benchmarks/results/" in document["command"]  # values by query
    after = "" if kept else ", after the trainings of its `study.json`"
    return f"\n{body}\n\n`{document['command']}`{after}; {versions}.\n\n"


def equivalence_table(table: pd.DataFrame) -> Lines:
    """Tabulate the differences of metrics in each library, in thousandths, and the smallest margin that is passed."""
    lines = [["metric", *(TITLES[library] for library in table["library"].unique())]]
    for metric, of in table.groupby("metric", sort=False):
        cells = (f"{1e3 * r.difference:+.1f} ({1e3 * r.se:.1f}), {1e3 * r.within:.1f}" for r in of.itertuples())
        lines.append([str(metric), *cells])
    return lines


def pooled(results: Path) -> pd.DataFrame:
    """Return the leads of our names over all data of the study, and of its held-out queries."""
    parts = {"all queries of the study": ("untuned", "untuned_catboost"),
             "held-out queries": ("held_halves", "held_catboost")}  # fmt: skip
    tables = []
    for kind, folders in parts.items():
        for folder in folders:
            table = pd.read_csv(results / folder / "lead.csv")
            tables.append(table[table["data"] == table["data"].iloc[-1]].assign(data=kind))
    return pd.concat(tables)


def pushed(metric: str) -> list[float]:
    """Return the gradients of the four documents that docs/hessian.md has."""
    grad, _ = LambdaMART(metric).gradient_hessian([0.3, 0.2, 0.1, 0.0], LABELS, group=[4])
    return [float(g) for g in grad]


def published(text: str, results: Path) -> str:
    """Fill a page with tables of the results; an explanation that several share stands below the first."""
    above: set[str] = set()

    def anew(found: re.Match[str]) -> str:
        paragraphs = block(found[2], results).split("\n\n")
        kept = [text for text in paragraphs if text not in above or not text[:1].isalpha()]
        above.update(paragraphs)
        return found[1] + "\n\n".join(kept) + found[3]

    return BLOCK.sub(anew, text)


def found_on(page: str) -> Any:
    """Return what the code of a page calls ``found``; it is run up to there."""
    names: dict[str, Any] = {}
    for code in re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / page).read_text(), re.S | re.M):
        if "found" not in names:
            exec(compile(code, page, "exec"), names)
    return names["found"]


def publish(
    results: Annotated[Path, Option(help="Folder with the JSON files of the other benchmarks.")] = RESULTS,
) -> None:
    """Write the tables and the pictures of the pages anew.

    Pages without changes are not written.
    """
    leads = click_leads(json.loads((results / "clicks.json").read_text()))
    pictures = {
        "seconds": seconds(json.loads((results / "training.json").read_text())["results"]),
        "level": lead_dots(pooled(results)),
        "pushes": pushes(LABELS, {name.upper(): pushed(name) for name in ("ndcg", "mrr")}),
        "tradeoff": front(found_on("several_goals.md")),
        "propensities": propensities(found_on("position_bias.md")),
        "objectives": questions(QUESTIONS),
        "clicks": click_dots(leads[leads["at"] == "100 rounds"]),
    }
    for name, figure in pictures.items():
        write_figure(figure, PICTURES / f"{name}.{'svg' if name == 'objectives' else 'png'}")  # the site's has links
    for page in PAGES:
        text = page.read_text()
        new = published(text, results)
        if new != text:
            with replacing(page) as beside:
                beside.write_text(new)
            echo(f"written: {page.relative_to(ROOT)}")
