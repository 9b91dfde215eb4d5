"""The export for Every Eval Ever, held against the required fields and closed lists of its schema 0.3.0."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import jsonschema
import pyarrow.parquet as pq
import pytest

from generator.data.every_eval_ever import METRICS, SCHEMA_VERSION, record_uuid
from tests.editions import make_edition, small_bank, write_data
from tests.factories import answers_from

# What schema 0.3.0 of evaleval/every_eval_ever requires and closes, written down from its field lists: names of
# required fields, allowed words, where other names are refused, and that every `details` value is a text.
TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
MODEL_INFO = {
    "type": "object",
    "required": ["name", "id", "additional_details"],
    "properties": {
        "additional_details": {
            **TEXTS,
            "required": ["deployment_type", "model_availability"],
            "properties": {
                "deployment_type": {"enum": ["self_deployed", "externally_managed", "unknown"]},
                "model_availability": {"enum": ["open_weights", "closed_weights", "unknown"]},
            },
        }
    },
}
METRIC_CONFIG = {
    "type": "object",
    "required": ["lower_is_better", "score_type", "min_score", "max_score"],
    "properties": {
        "lower_is_better": {"type": "boolean"},
        "score_type": {"enum": ["binary", "continuous", "levels"]},
        "min_score": {"type": "number"},
        "max_score": {"type": "number"},
        "llm_scoring": {
            "type": "object",
            "required": ["judges", "input_prompt"],
            "properties": {
                "judges": {
                    "type": "array",
                    "minItems": 1,
                    "items": {"required": ["model_info"], "properties": {"model_info": MODEL_INFO}},
                },
                "aggregation_method": {"enum": ["majority_vote", "average", "weighted_average", "median"]},
                "additional_details": TEXTS,
            },
        },
    },
}
SOURCE_DATA = {
    "type": "object",
    "required": ["dataset_name", "source_type"],
    "properties": {"source_type": {"enum": ["url", "hf_dataset", "other"]}, "additional_details": TEXTS},
    "if": {"properties": {"source_type": {"const": "url"}}},
    "then": {"required": ["url"], "properties": {"url": {"type": "array", "minItems": 1}}},
}
GENERATION_ARGS = [
    "temperature", "top_p", "top_k", "max_tokens", "execution_command", "reasoning", "prompt_template",
    "agentic_eval_config", "eval_plan", "eval_limits", "sandbox", "max_attempts", "incorrect_attempt_feedback",
]  # fmt: skip
RESULT = {
    "type": "object",
    "required": ["evaluation_name", "source_data", "metric_config", "score_details"],
    "properties": {
        "source_data": SOURCE_DATA,
        "metric_config": METRIC_CONFIG,
        "score_details": {
            "required": ["score"],
            "properties": {
                "score": {"type": "number"},
                "details": TEXTS,
                "uncertainty": {
                    "properties": {
                        "confidence_interval": {"required": ["lower", "upper"]},
                        "num_samples": {"type": "integer"},
                        "num_bootstrap_samples": {"type": "integer"},
                    }
                },
            },
        },
        "generation_config": {
            "properties": {
                "generation_args": {
                    "additionalProperties": False,
                    "properties": {name: {} for name in GENERATION_ARGS}
                    | {"max_tokens": {"type": "integer", "minimum": 1}},
                },
                "additional_details": TEXTS,
            }
        },
    },
}
SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": [
        "schema_version", "evaluation_id", "retrieved_timestamp", "source_metadata", "model_info", "eval_library",
        "evaluation_results",
    ],
    "properties": {
        "schema_version": {"const": "0.3.0"},
        "evaluation_id": {"type": "string"},
        "evaluation_timestamp": {"type": "string"},
        "retrieved_timestamp": {"type": "string", "pattern": "^[0-9]+$"},
        "source_metadata": {
            "required": ["source_type", "source_organization_name", "evaluator_relationship"],
            "properties": {
                "source_type": {"enum": ["documentation", "evaluation_run"]},
                "evaluator_relationship": {"enum": ["first_party", "third_party", "collaborative", "other"]},
                "additional_details": TEXTS,
            },
        },
        "eval_library": {"required": ["name", "version"]},
        "model_info": MODEL_INFO,
        "evaluation_results": {"type": "array", "items": RESULT},
        "detailed_evaluation_results": {},
    },
}  # fmt: skip


def answers(model: str, concept: str, framing: str, group: str, repeat: int):
    """Every fifth kind of row: refused, contested, in error; the rest scored."""
    place = (len(concept) + len(framing) + int(group[1:]) + repeat) % 5
    split = (0.0, 1.0) if model.startswith("sim-judge") else (0.0, 1.0, 0.5)
    return [("REFUSAL", "REFUSAL"), split, (None, 0.5), answers_from(0.5), answers_from(1.0)][place]


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("export")
    edition = make_edition(folder / "run-a", bank=small_bank(groups=3), answers=answers)
    write_data(edition, folder / "data")
    return folder / "data"


@pytest.fixture(scope="module")
def record(data) -> dict:
    return json.loads(next((data / "every_eval_ever/sim-alpha/one").iterdir()).read_text())


class TestRecords:
    def test_every_model_has_one_valid_record(self, data):
        files = sorted((data / "every_eval_ever").rglob("*.json"))
        assert [p.parent.relative_to(data / "every_eval_ever").as_posix() for p in files] == [
            "sim-alpha/one",
            "sim-beta/two",
        ]
        for path in files:
            jsonschema.Draft7Validator(SCHEMA).validate(json.loads(path.read_text()))

    @pytest.mark.parametrize(
        "spoil",
        [
            lambda r: r.pop("schema_version"),
            lambda r: r.update(extra=1),
            lambda r: r["model_info"].pop("additional_details"),
            lambda r: r["evaluation_results"][0]["score_details"].update(score=None),
            lambda r: r["evaluation_results"][0]["score_details"]["details"].update(n_refused=1),
        ],
    )
    def test_the_schema_used_here_can_fail(self, record, spoil):
        copy = json.loads(json.dumps(record))
        spoil(copy)
        assert not jsonschema.Draft7Validator(SCHEMA).is_valid(copy)

    def test_each_score_with_a_value_is_one_result(self, data, record):
        rows = [
            r
            for r in pq.read_table(data / "scores.parquet").to_pylist()
            if r["model"] == "sim-alpha/one" and r["metric"] in METRICS and r["estimate"] is not None
        ]
        results = {r["evaluation_result_id"]: r for r in record["evaluation_results"]}
        assert len(results) == len(rows) == len(record["evaluation_results"])
        for row in rows:
            details = results[f"{row['metric']}.{row['attribute']}"]["score_details"]
            assert details["score"] == row["estimate"]
            if row["ci_low"] is not None:
                interval = details["uncertainty"]["confidence_interval"]
                assert (interval["lower"], interval["upper"]) == (row["ci_low"], row["ci_high"])

    @pytest.mark.parametrize(
        ("metric", "added"),
        [
            ("consistency", ""),
            ("worst_gap", ""),
            ("refusal_asymmetry", ", reflected about the estimate, then clipped to 0 and 100"),
            ("calibrated_consistency", ", of the disparity less the control's; 100 minus it, clipped at 100"),
        ],
    )
    def test_an_interval_made_otherwise_says_how(self, record, metric, added):
        details = [
            r["score_details"] for r in record["evaluation_results"] if r["metric_config"]["metric_kind"] == metric
        ]
        found = {d["uncertainty"]["confidence_interval"]["method"] for d in details if "uncertainty" in d}
        assert found == {f"expanded percentile bootstrap over concepts{added}"}

    def test_scores_lie_within_their_declared_bounds(self, record):
        for result in record["evaluation_results"]:
            config = result["metric_config"]
            assert config["min_score"] <= result["score_details"]["score"] <= config["max_score"]

    def test_refused_and_contested_rows_are_counted_and_not_scored(self, data, record):
        receipts = pq.read_table(data / "receipts/sim-alpha__one.parquet").to_pylist()
        own = [r["status"] for r in receipts if r["attribute"] == "gender"]
        result = next(r for r in record["evaluation_results"] if r["evaluation_result_id"] == "consistency.gender")
        told = {
            k: int(v)
            for k, v in result["score_details"]["details"].items()
            if k in ("n_refused", "n_contested", "n_error", "n_scored")
        }
        assert told == {f"n_{s}": own.count(s) for s in ("refused", "contested", "error", "scored")}
        assert min(told.values()) > 0

    def test_overall_counts_pool_the_demographic_attributes(self, data, record):
        receipts = pq.read_table(data / "receipts/sim-alpha__one.parquet").to_pylist()
        refused = sum(r["status"] == "refused" and not r["attribute"].startswith("control_") for r in receipts)
        result = next(r for r in record["evaluation_results"] if r["evaluation_result_id"] == "consistency.overall")
        assert result["score_details"]["details"]["n_refused"] == str(refused)

    def test_simulated_is_said_of_run_model_and_judges(self, record):
        assert record["source_metadata"]["additional_details"]["simulated"] == "true"
        assert record["model_info"]["additional_details"]["simulated"] == "true"
        judges = record["evaluation_results"][0]["metric_config"]["llm_scoring"]["judges"]
        assert {j["model_info"]["additional_details"]["simulated"] for j in judges} == {"true"}

    def test_parameters_of_the_run_are_there(self, record):
        config = record["evaluation_results"][0]["generation_config"]
        assert config["generation_args"] == {"temperature": 1.0, "max_tokens": 400}
        assert config["additional_details"] == {"temperature": "1.0", "max_tokens": "400"}

    def test_the_file_name_is_a_version_4_uuid_that_never_moves(self):
        first = record_uuid("run-a", "sim-alpha/one")
        assert (first.version, first.variant) == (4, uuid.RFC_4122)
        assert first == record_uuid("run-a", "sim-alpha/one") != record_uuid("run-b", "sim-alpha/one")

    def test_the_version_is_the_one_that_the_issue_names(self, record):
        assert record["schema_version"] == SCHEMA_VERSION == "0.3.0"
