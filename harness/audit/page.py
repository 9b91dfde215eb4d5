"""The review sheet as one HTML file without any link: works offline, on a phone, and saves its own CSV.

See contract: stages, "The review sheet".
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from generator.schema.canonical import hash_json
from harness.audit.sheet import DrawRecord, Item, Judged, choices

_PARTS = Path(__file__).parent / "audit_page"


def sheet_html(items: Sequence[Item], run: Judged, record: DrawRecord) -> str:
    """Return the page; texts travel as JSON and become text nodes, so that nothing in them can run."""
    style, script = ((_PARTS / name).read_text(encoding="utf-8") for name in ("sheet.css", "sheet.js"))
    fill = {
        "@TITLE@": f"Review of {record.run_id}",
        "@POLICY@": f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'",
        "@STYLE@": style,
        "@SCRIPT@": script,
        "@DATA@": _embedded(sheet_data(items, run, record)),
    }
    page = (_PARTS / "sheet.html").read_text(encoding="utf-8")
    # The data comes last: what stands in it is never taken for a mark.
    for mark, text in fill.items():
        page = page.replace(mark, text)
    return page


def sheet_data(items: Sequence[Item], run: Judged, record: DrawRecord) -> dict[str, object]:
    """Return what the page's script works on; `key` names this draw in the browser's storage."""
    used = sorted({item.rubric for item in items})
    return {
        "run": record.run_id,
        "key": hash_json(record.model_dump(mode="json"))[:16],
        "simulated": run.manifest.simulated,
        "rubrics": {
            name: {
                "score": run.bank.rubric[name].scale == "score",
                "labels": list(choices(run.bank.rubric[name])),
                "rules": run.bank.rubric[name].judge_prompt,
            }
            for name in used
        },
        "items": [{"id": i.receipt_id, "rubric": i.rubric, "prompt": i.prompt, "response": i.response} for i in items],
    }


def _embedded(data: object) -> str:
    """Return JSON that can stand in a script element: no <, >, & or line separator in it."""
    text = json.dumps(data, sort_keys=True)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
