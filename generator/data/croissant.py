"""`croissant.json`: Croissant 1.1 with responsible-AI fields for every file and table.

See contract: publication, "Data files".
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from generator.data import citation
from generator.data.datapackage import field_type
from generator.data.description import description, keywords, times
from generator.data.dictionary import OTHER_TABLES
from generator.data.table_files import DataFile
from generator.edition import paths
from generator.edition.edition import Edition
from generator.schema.columns import MASK_SPANS, Column, vote_fields

CONTEXT = {
    "@vocab": "https://schema.org/",
    "arrayShape": "cr:arrayShape",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "containedIn": "cr:containedIn",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "description": {"@container": "@language"},
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isArray": "cr:isArray",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "name": {"@container": "@language"},
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
_VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")
ENCODINGS = {
    "parquet": "application/x-parquet",
    "csv": "text/csv",
    "json": "application/json",
    "html": "text/html",
    "bib": "text/x-bibtex",
    "ipynb": "application/x-ipynb+json",
    "md": "text/markdown",
}
SPDX = "https://spdx.org/licenses/"
RECEIPTS, RECEIPT_FILES = "receipts", "receipt-files"
# By the type that Table Schema has for it.
DATA_TYPES = {"number": "sc:Float", "integer": "sc:Integer", "boolean": "sc:Boolean", "string": "sc:Text"}


def descriptor(edition: Edition, files: Sequence[DataFile]) -> bytes:
    """Return the metadata of every file: a record set for each table, one for the receipts of all models together.

    Where the models are few, each file of receipts is a record set as well: unlike a set of files it loads over HTTP,
    and its hash is checked.

    Addresses are absolute where the site's address is known: libraries resolve a relative one against a folder of the
    machine that they run on, never against the address of the metadata. Without it they are relative, so that a
    downloaded folder loads.
    """
    manifest, licence = edition.run.manifest, edition.site.data_licence
    base = f"{edition.base_url}/{quote(paths.data_file(manifest.run_id, ''))}" if edition.base_url else ""
    version = manifest.bank_version
    parquet = [file for file in files if file.ending == "parquet"]
    shards = [file for file in parquet if file.table == RECEIPTS]
    tables = [file for file in parquet if file.table != RECEIPTS]
    described: dict[str, Any] = {
        "@context": {"@language": edition.site.language, **CONTEXT},
        "@type": "sc:Dataset",
        "conformsTo": ["http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0"],
        "name": f"{edition.site.file_name}-{manifest.run_id}",
        "description": description(edition),
        "version": version if _VERSION.fullmatch(version) else f"0.0.0+{re.sub('[^0-9a-zA-Z-]', '-', version)}",
        "license": [f"{SPDX}{licence.spdx}.html", licence.url] if licence.spdx else licence.url,
        "datePublished": manifest.date,
        "creator": {"@type": "sc:Organization", "name": edition.site.publisher},
        "publisher": {"@type": "sc:Organization", "name": edition.site.publisher},
        "inLanguage": edition.run.bank.rules.language,
        "keywords": keywords(edition),
        "citeAs": citation.bibtex(edition).decode(),
        **responsible_ai(edition),
        "distribution": [*(_file_object(file, base) for file in files), *_receipt_files(shards)],
        "recordSet": [
            *(_record_set(file, {"fileObject": {"@id": file.name}}) for file in tables),
            *_receipts(shards, each=not edition.crowded),
        ],
    }
    if url := citation.address(edition):
        described["url"] = url
    return (json.dumps(described, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def responsible_ai(edition: Edition) -> dict[str, Any]:
    """Return the Croissant RAI fields, facts of the run taken from its manifest and standing."""
    manifest = edition.run.manifest
    judges = list(manifest.judges.all)
    varied = ", ".join(attribute.label for attribute in edition.run.bank.attributes)
    return {
        "rai:dataCollection": _collection(edition),
        "rai:dataCollectionType": ["Simulated answers" if manifest.simulated else "Answers of language models"],
        "rai:dataCollectionMissingData": (
            "A call that failed for good is a row with status error and a null response; refused and contested rows "
            "have no value. None of them is imputed."
        ),
        "rai:dataCollectionTimeFrame": [manifest.date],
        "rai:dataImputationProtocol": "None: a missing value stays null and is left out of means.",
        **_annotation(edition),
        "rai:machineAnnotationTools": judges,
        "rai:dataAnnotationAnalysis": [
            "agreement holds chance-corrected agreement of the primary judges by rubric, human_audit a blind check."
        ],
        "rai:dataUseCases": [
            "Comparing how alike a model treats persons of different groups; checking the published scores."
        ],
        "rai:dataLimitations": [
            "One bank's prompts in one language; judges are language models; consistency is no certificate of fairness."
        ],
        "rai:dataBiases": [
            "Judges may share biases with the models they label; groups and scenarios are the bank's choice."
        ],
        "rai:dataSocialImpact": "Prompts name groups of people; answers may be offensive or wrong and stand as given.",
        "rai:personalSensitiveInformation": [
            f"Persons in the prompts are invented; they are described by group terms of these attributes: {varied}."
        ],
        "rai:dataReleaseMaintenancePlan": (
            "A published run is never changed, except that a response may be withdrawn with its reason stated."
        ),
    }


def _collection(edition: Edition) -> str:
    if edition.run.manifest.imported is not None:
        return "Another program collected the answers; they were imported as it wrote them."
    source = "simulated programs" if edition.run.manifest.simulated else "the models' endpoints"
    return f"Each prompt was sent {times(edition)} to {source}; every reply is kept."


def _annotation(edition: Edition) -> dict[str, Any]:
    """Return how responses were masked and labeled; of an imported run, nothing that was not done."""
    imported = edition.run.manifest.imported
    missing = imported.not_done if imported is not None else ()
    masked = "Judges saw prompt and response with every term of the attribute as [PERSON]; mask_spans says where."
    rule = "Two primary judges label each response; where they differ a tiebreak votes and two of three decide."
    contested = "Without two equal votes the row is contested."
    vendors = "" if imported is not None else " No judge labels a model of its own vendor."
    single = "second_judge" in missing
    return {
        "rai:dataPreprocessingProtocol": ["None: nothing was masked." if "masking" in missing else masked],
        "rai:dataAnnotationProtocol": ["One judge labels each response."] if single else [rule, contested + vendors],
        "rai:annotationsPerItem": "1" if single else "2 or 3",
    }


def _file_object(file: DataFile, base: str) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": file.name,
        "name": file.name,
        "description": file.description,
        "contentUrl": f"{base}{quote(file.name)}" if base else file.name,
        "contentSize": f"{file.bytes} B",
        "encodingFormat": ENCODINGS.get(file.ending, "text/plain"),
        "sha256": file.sha256,
    }


def _receipt_files(shards: Sequence[DataFile]) -> list[dict[str, Any]]:
    """Return the set of the receipts' files. It lies in the folder of the metadata, so it needs a downloaded folder."""
    if not shards:
        return []
    return [
        {
            "@type": "cr:FileSet",
            "@id": RECEIPT_FILES,
            "name": RECEIPT_FILES,
            "description": "The receipts of every model. Each file is a file object as well, with its hash.",
            "encodingFormat": ENCODINGS["parquet"],
            "includes": f"{RECEIPTS}/*.parquet",
        }
    ]


def _receipts(shards: Sequence[DataFile], *, each: bool) -> list[dict[str, Any]]:
    """Return the record set of all receipts, with a column `model`, and on demand one of each file."""
    if not shards:
        return []
    whole = dataclasses.replace(shards[0], name=RECEIPTS, description=OTHER_TABLES[RECEIPTS])
    return [
        _record_set(whole, {"fileSet": {"@id": RECEIPT_FILES}}),
        *(_record_set(file, {"fileObject": {"@id": file.name}}) for file in shards if each),
    ]


def _record_set(file: DataFile, source: Mapping[str, Any]) -> dict[str, Any]:
    name = file.name.removesuffix(".parquet")
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": file.description,
        "field": [_field(name, source, column) for column in file.fields],
    }


def _field(record_set: str, source: Mapping[str, Any], column: Column) -> dict[str, Any]:
    field: dict[str, Any] = {
        "@type": "cr:Field",
        "@id": f"{record_set}/{column.name}",
        "name": column.name,
        "description": column.description,
    }
    extract = {**source, "extract": {"column": column.name}}
    nested = _nested(column)
    if not nested:
        return {**field, "dataType": DATA_TYPES[field_type(column.type)], "source": extract}
    # A list of structs: each subfield takes its own key out of every item of the list.
    subs = []
    for name, kind, text in nested:
        sub = {"@type": "cr:Field", "@id": f"{field['@id']}/{name}", "name": name, "description": text}
        own = {**extract, "transform": {"jsonPath": f"$.{name}"}}
        subs.append({**sub, "dataType": DATA_TYPES[field_type(kind)], "source": own})
    return {**field, "isArray": True, "arrayShape": "-1", "subField": subs}


def _nested(column: Column) -> list[tuple[str, pa.DataType, str]]:
    if fields := vote_fields(column.type):
        return [(c.name, c.type, c.description) for c in fields]
    if column.type == MASK_SPANS:
        item = column.type.value_type
        return [(item.field(i).name, item.field(i).type, column.description) for i in range(item.num_fields)]
    return []
