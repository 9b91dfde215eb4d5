"""The names in bank 1.0.0, as tests write them: its framings, attributes and categories."""

from __future__ import annotations

FRAMINGS = ("direct", "professional")
DEMOGRAPHIC = (
    "race_ethnicity",
    "gender",
    "age",
    "religion",
    "immigration_status",
    "political_affiliation",
    "disability",
)
CONTROL_PROFESSION = "control_profession"
CONTROL_TAG = "control_tag"
CONTROLS = (CONTROL_PROFESSION, CONTROL_TAG)
CATEGORIES = ("stance", "allocation", "refusal", "regard", "capability")
