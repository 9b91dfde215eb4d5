"""The search index over prose, model, attribute and concept pages: Pagefind's program, run once over a finished tree.

Reads HTML below a tree, writes `pagefind/` there. Receipts are never indexed: Pagefind writes a file a page. Pages are
handed to the program one by one in the order of their names: left to walk the tree itself it numbers them as the file
system lists them, and the same pages would give other bytes on another disk.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from generator.schema.canonical import canonical_json
from generator.schema.errors import ToolError

FOLDER = "pagefind"
KNOWN = "known.json"
_FRAGMENT = ".pf_fragment"
_SIGNED = b"pagefind_dcd"  # what every file of the index begins with once it is unpacked
INDEXED = (
    "methodology/*.html",
    "about.html",
    "runs/*/models/*/*.html",
    "runs/*/attributes/*.html",
    "runs/*/concepts/*.html",
)
# Navigation and repeated tables of numbers would only blur what a page is about.
IGNORED = (".prose-nav", ".prose-turn", ".prose-jump", ".on-page", "details", "math")
_CONFIG = {"root_selector": "main", "exclude_selectors": IGNORED, "force_language": "en", "keep_index_url": True}
# What the site's own search page loads; the ready-made interfaces that Pagefind adds are left out.
_UNUSED = re.compile(r".*ui.*|pagefind-highlight.*|playground/.*")
_END = b","  # of a message, in both directions
_INDEX = 0  # the number of the first index that a service makes


def write_search(tree: Path) -> None:
    """Write the search index of a finished tree; raises ToolError with Pagefind's own words when it fails."""
    for name, data in search_files(tree):
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def search_files(tree: Path) -> Iterator[tuple[str, bytes]]:
    """Yield (path below the tree, bytes) of the search index of a finished tree.

    Raises ToolError with Pagefind's own words when it fails, or when the tree has no page to index.
    """
    pages = sorted(page.relative_to(tree).as_posix() for pattern in INDEXED for page in tree.glob(pattern))
    if not pages:
        raise ToolError(f"the search index could not be written: {tree} has no page to index")
    answers = _asked(list(_messages(tree, pages)))
    errors = [str(answer.get("message")) for answer in answers if answer.get("type") == "Error"]
    if errors or len(answers) != len(pages) + 2:
        words = " ".join(" ".join(errors).split())[:500] or f"it ended after {len(answers):,} answers"
        raise ToolError(f"the search index could not be written (pagefind): {words}")
    found = sorted(answers[-1]["files"], key=lambda f: str(f["path"]).encode())
    files = [(f["path"], base64.b64decode(f["content"])) for f in found if _UNUSED.fullmatch(f["path"]) is None]
    yield from ((f"{FOLDER}/{name}", data) for name, data in [*files, (KNOWN, known_pages(files))])


def known_pages(files: list[tuple[str, bytes]]) -> bytes:
    """Return, as JSON, what the search page knows of a hit before it reads it: {hit's id: [run, title]}.

    Pages of runs only. By it the run that fronts the site comes first, and a title leads to its page. Pagefind's own
    filters could say the same, but it writes them in another order each time. A hit's id is the name of its fragment.
    """
    known = {}
    for name, data in files:
        if name.endswith(_FRAGMENT):
            page = json.loads(gzip.decompress(data)[len(_SIGNED) :])
            parts = page["url"].split("/")
            if parts[1] == "runs":
                known[name.rpartition("/")[2].removesuffix(_FRAGMENT)] = [parts[2], page["meta"].get("title", "")]
    return canonical_json(known) + b"\n"


def _messages(tree: Path, pages: list[str]) -> Iterator[dict[str, Any]]:
    yield {"type": "NewIndex", "config": _CONFIG}
    for page in pages:
        text = (tree / page).read_text(encoding="utf-8", errors="replace")
        yield {
            "type": "AddFile",
            "index_id": _INDEX,
            "url": None,
            "file_path": page,
            "file_contents": text,
        }
    # Files that the program writes itself may be cut short: it says that it has finished before they are on the disk.
    yield {"type": "GetFiles", "index_id": _INDEX}


def _asked(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Send messages to a service of Pagefind's program and return its answers in their order."""
    from pagefind_bin import get_executable

    command = [str(get_executable()), "--service"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as service:  # noqa: S603
        assert service.stdin is not None
        assert service.stdout is not None
        # It answers while it is still being asked: who writes all first and reads then would wait for ever.
        sender = threading.Thread(target=_send, args=(service.stdin, messages))
        sender.start()
        told, ended = bytearray(), 0
        while ended < len(messages) and (more := service.stdout.read1()):  # type: ignore[attr-defined]
            told += more
            ended += more.count(_END)
        sender.join()
        service.stdin.close()
    return [json.loads(base64.b64decode(text))["payload"] for text in told.split(_END)[:-1]]


def _send(pipe: IO[bytes], messages: list[dict[str, Any]]) -> None:
    try:
        for number, payload in enumerate(messages, 1):
            text = json.dumps({"message_id": number, "payload": payload})
            pipe.write(base64.b64encode(text.encode()) + _END)
        pipe.flush()
    except BrokenPipeError:
        pass  # it ended early; the answers that are missing say so
