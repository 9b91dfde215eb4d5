"""Which rows the published table `scores` holds and what their counts count: metric by metric.

The data dictionary shows this; `tests/test_score_rows.py` holds it against scored runs, row by row and count by count.

See contract: tables, "Scores".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Place = Literal["demographic", "control", "overall", "*"]


@dataclass(frozen=True)
class RowKind:
    """The rows of some metrics.

    places: which values of `attribute` they have: demographic ones, controls, `overall`; `*` = `overall`, of model `*`.
    by_group, whole: whether there is a row for each group, and one with group null. concepts, cells, rows: what
    `n_concepts`, `n_cells` and `n_rows` count. null: when there is no estimate.
    """

    metrics: tuple[str, ...]
    places: tuple[Place, ...]
    concepts: str
    cells: str
    rows: str
    null: str
    by_group: bool = False
    whole: bool = True
    where: str = ""
    categories: str = ""

    @property
    def scope(self) -> str:
        """The rows in words, as the dictionary lists them."""
        words = {
            ("demographic", "control", "overall"): "each attribute; overall",
            ("demographic", "control"): "each attribute",
            ("demographic",): "each demographic attribute",
            ("overall",): "overall",
            ("overall", "*"): "overall; overall of model *",
        }[self.places]
        if self.categories and not self.whole:
            return f"overall, by {self.categories}"
        groups = "each group of " if not self.whole else ""
        also = "; each group of each attribute" if self.whole and self.by_group else ""
        by_category = f"; overall, by {self.categories}" if self.categories else ""
        return f"{groups}{words}{also}{by_category}{self.where}"


_EVERYWHERE: tuple[Place, ...] = ("demographic", "control", "overall")
_ATTRIBUTES: tuple[Place, ...] = ("demographic", "control")
_DENOMINATOR = ("with a row of n_rows", "(concept, framing) with a row of n_rows")

ROW_KINDS = (
    RowKind(
        ("disparity", "consistency", "worst_gap"),
        _EVERYWHERE,
        "with a counting (concept, framing)",
        "counting (concept, framing)",
        "scored rows of those",
        "no counting (concept, framing)",
    ),
    RowKind(
        ("crossfit_disparity",),
        _ATTRIBUTES,
        "with a value",
        "(concept, framing) in which two groups have two scored repeats or more each, one of them the same repeat",
        "scored rows of those groups there",
        "no repeat can be left out",
    ),
    RowKind(
        ("lean",),
        ("demographic",),
        "with a counting (concept, framing) in which the group has a value",
        "those (concept, framing)",
        "scored rows of the group there",
        "no such (concept, framing)",
        by_group=True,
        whole=False,
    ),
    RowKind(
        ("refusal_rate",),
        _EVERYWHERE,
        *_DENOMINATOR,
        "scored and refused rows, of the group or category where there is one",
        "n_rows is 0",
        by_group=True,
        categories="category of demographic concepts",
    ),
    RowKind(
        ("refusal_asymmetry",),
        _ATTRIBUTES,
        *_DENOMINATOR,
        "scored and refused rows",
        "fewer than two groups have a row of n_rows",
    ),
    RowKind(("filter_refusal_rate",), _EVERYWHERE, *_DENOMINATOR, "scored and refused rows", "n_rows is 0"),
    RowKind(("contested_rate",), _EVERYWHERE, *_DENOMINATOR, "scored, refused and contested rows", "n_rows is 0"),
    RowKind(("error_rate",), _EVERYWHERE, *_DENOMINATOR, "planned rows, absent ones too", "n_rows is 0"),
    RowKind(("truncated_rate",), _EVERYWHERE, *_DENOMINATOR, "rows with an answer and a finish reason", "n_rows is 0"),
    RowKind(("mask_leakage",), _EVERYWHERE, *_DENOMINATOR, "rows with an answer and a mask_leak", "n_rows is 0"),
    RowKind(
        ("verdict_mismatch_rate",),
        _EVERYWHERE,
        "with a vote of n_rows",
        "(concept, framing) with a vote of n_rows",
        "votes, not rows: primary votes whose verdict_matches_prose is true or false",
        "n_rows is 0",
    ),
    RowKind(
        ("instability",),
        _EVERYWHERE,
        "with a cell of n_cells",
        "(concept, framing, group) with two scored repeats or more",
        "scored rows of those",
        "n_cells is 0",
    ),
    RowKind(
        ("band_low", "band_high"),
        ("overall", "*"),
        "those of the disparity of the control at that end; of model *, the fewest among its models",
        "the same; of model *, 0",
        "the same; of model *, 0",
        "a control has no value: all counts are 0, and there is no row of model * if no model has both",
        where=", in a bank with a control for each edge",
    ),
    RowKind(
        ("calibrated_consistency",),
        ("demographic",),
        "those of the attribute's own disparity",
        "the same",
        "the same",
        "the attribute or that control has no disparity",
        where=", in a bank with a control of the upper edge",
    ),
    RowKind(
        ("excess", "mde"),
        ("demographic",),
        "those of the attribute's own disparity",
        "the same",
        "the same",
        "the attribute or a control has no disparity; for mde also, attribute or edge has a single concept",
        where=", in a bank with a control",
    ),
    RowKind(
        ("role_reversal",),
        _ATTRIBUTES,
        "two-sided ones with a group that has a value in both framings",
        "(two-sided concept, framing) with a scored row",
        "scored two-sided rows",
        "no such group",
        where=" that has two-sided concepts, not all of them withheld",
    ),
    RowKind(
        ("favorability",),
        ("overall",),
        "demographic ones of the category with a scored row; overall, the sum over these categories",
        "(concept, framing) with a scored row",
        "scored rows",
        "no such concept; overall, one of these categories has none, but for withheld ones",
        categories="category that is not of compliance",
    ),
    RowKind(
        ("favorability_positive", "favorability_negative"),
        ("overall",),
        "those of favorability with polarity +1, or -1",
        "(concept, framing) with a scored row",
        "scored rows",
        "no such concept",
        whole=False,
        categories="category of these that has concepts of that polarity",
    ),
    RowKind(
        ("favorability_gap",),
        ("overall",),
        "those of the models that are compared; 0 where there is no estimate",
        "0",
        "0",
        "fewer than two models have a value on every concept, or this one has not",
        categories="category of these",
    ),
    RowKind(
        ("compliance",),
        ("overall",),
        "demographic ones of the category with a scored row",
        "(concept, framing) with a scored row",
        "scored rows",
        "no such concept",
        whole=False,
        categories="category of compliance",
    ),
    RowKind(
        ("label_share", "label_share_positive", "label_share_negative"),
        ("overall",),
        "demographic ones of the category with a scored row; of that polarity",
        "(concept, framing) with a scored row",
        "scored rows",
        "n_rows is 0",
        whole=False,
        categories="label of each category, as category.LABEL; of a polarity where the category has such concepts",
    ),
)
