"""What pyproject.toml cannot say: the README for a package index, where relative links lead nowhere.

The variable ``REPOSITORY_URL`` is the address of the repository; without it links stay relative. The release sets it.
"""

import os
import re
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).parent
RELATIVE = re.compile(r"(!?\[[^\]]*\]\()(?!\w+:|#)([^)\s]+\))")


def absolute(text: str, address: str, version: str) -> str:
    """The README ``text`` with links to the files of ``version`` in the repository at ``address``."""

    def link(match: re.Match[str]) -> str:
        kind = "raw" if match[1].startswith("!") else "blob"
        return f"{match[1]}{address}/{kind}/v{version}/{match[2]}"

    return RELATIVE.sub(link, text)


def described(address: str) -> dict[str, object]:
    """The README and the addresses of the project, as metadata."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r'__version__ = "(.+)"', (ROOT / "ltr_objectives" / "__init__.py").read_text(encoding="utf-8"))
    if address and found:
        address, text = address.rstrip("/"), absolute(text, address.rstrip("/"), found[1])
    changelog = f"{address}/blob/main/CHANGELOG.md"
    return {
        "long_description": text,
        "long_description_content_type": "text/markdown",
        "project_urls": {"Source": address, "Issues": f"{address}/issues", "Changelog": changelog} if address else {},
    }


if __name__ == "__main__":
    setup(**described(os.environ.get("REPOSITORY_URL", "")))
