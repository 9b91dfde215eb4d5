"""Every JSON Schema that is made from the generator's code, as files.

`python -m generator.publishing.json_schemas docs/schemas` writes them; the harness adds that of run.toml.

See contract: publication, "JSON Schemas".
"""

from __future__ import annotations

import sys
from pathlib import Path

from generator.data.data_manifest import SCHEMA as DATA_MANIFEST
from generator.data.data_manifest import data_manifest_schema
from generator.publishing.provenance import SCHEMA as PUBLICATION
from generator.publishing.provenance import Publication
from generator.schema.json_schemas import render_schema, run_schemas, schema_of


def made_schemas() -> dict[str, bytes]:
    """Return the schemas by the names of their files."""
    about = "What decides the bytes of a site's pages and stands in no data file."
    found = dict(run_schemas())
    found[DATA_MANIFEST] = data_manifest_schema()
    found[PUBLICATION] = schema_of(Publication, PUBLICATION, "publication.json", about)
    return {name: render_schema(schema) for name, schema in found.items()}


if __name__ == "__main__":
    for file, data in made_schemas().items():
        Path(sys.argv[1], file).write_bytes(data)
