"""Each notebook as a page of the documentation, with the outputs that it is shipped with."""

import base64
import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"


def pages(outside: Callable[[str], str]) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of a page for each notebook, and of its pictures; ``outside`` leads links off the site."""
    for path in sorted(FOLDER.glob("*.ipynb")):
        notebook, pictures = nbformat.read(path, as_version=4), {}
        blocks: list[str] = []
        for number, cell in enumerate(notebook.cells):
            if cell.cell_type == "markdown":
                blocks.append(at_home(outside(cell.source)))
                continue
            blocks.append(f"```python\n{cell.source}\n```")
            for i, output in enumerate(joined(cell.outputs)):
                name = f"{path.stem}-{number}-{i}.png"
                if "image/png" in output.get("data", {}):
                    pictures[name] = base64.b64decode(output.data["image/png"])
                blocks.extend(shown(output, name))
        yield f"{path.stem}.md", "\n\n".join(blocks).encode()
        yield from pictures.items()


def at_home(markdown: str) -> str:
    """Lead the links of a notebook to pages of the site."""
    return markdown.replace("](../docs/", "](../").replace(".ipynb)", ".md)")


def joined(outputs: list[Any]) -> Iterator[Any]:
    """Yield the outputs, with what was printed in several parts as one."""
    for printed, group in itertools.groupby(outputs, key=lambda output: output.output_type == "stream"):
        parts = list(group)
        yield from [{"text": "".join(part.text for part in parts)}] if printed else parts


def shown(output: Any, picture: str) -> Iterator[str]:
    """Yield one output in Markdown."""
    data = output.get("data", {"text/plain": output.get("text", "")})
    if "image/png" in data:
        yield f"![]({picture})"
    elif "text/html" in data:
        table = re.sub(r"<style scoped>.*?</style>\s*", "", data["text/html"], flags=re.DOTALL)
        yield table.replace('<table border="1" class="dataframe">', "<table>")
    else:
        yield f"```text\n{data['text/plain'].rstrip()}\n```"
