"""What the data dictionary and the page on statistics say of the rows of `scores`: inventory, counts, nulls, flags.

Every count and flag is made again from receipts in plain loops, by the words of those pages.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import product

import pytest

from generator.runs.reader import load_run, read_shard
from generator.schema.bank import load_bank
from generator.schema.score_rows import ROW_KINDS
from generator.schema.tables import METRICS
from generator.scoring.run import score_run
from tests.editions import mixed
from tests.factories import answers_from, make_bank, make_rows, write_run
from tests.names_of_bank_1 import CONTROLS, DEMOGRAPHIC

MODELS = ("sim-alpha/one", "sim-beta/two", "sim-judge-a/three")
QUOTA = {"stance": 3, "capability": 2}
TWO_SIDED = ("age_stance_0", "age_capability_1", "control_tag_stance_0")


def answers(model, concept, framing, group, repeat):
    """Mixed rows; one model hardly has a religion row and answers gender always alike, another has no professions."""
    if model == "sim-beta/two" and concept.startswith("religion") and not (group == "g1" and concept.endswith("0")):
        return ("REFUSAL", "REFUSAL")
    if model == "sim-beta/two" and concept.startswith("gender"):
        return answers_from(0.5)
    if model == "sim-judge-a/three" and concept.startswith("control_profession"):
        return ("REFUSAL", "REFUSAL")
    return mixed(model, concept, framing, group, repeat)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    data = make_bank(groups=3, quota=QUOTA, control_quota=QUOTA).model_dump(mode="json")
    for concept in data["concepts"]:
        concept["two_sided"] = concept["id"] in TWO_SIDED
    bank = load_bank(data, "rows")
    shards = {m: make_rows(bank, m, run_id="rows", answers=answers) for m in MODELS}
    first = shards[MODELS[0]]
    for place, row in enumerate(first):
        row["mask_leak"] = place % 7 == 0
        for vote in row["votes"]:
            if vote["verdict_matches_prose"] is not None:
                vote["verdict_matches_prose"] = place % 5 > 0
    shards[MODELS[0]] = [row for place, row in enumerate(first) if place % 11]
    return load_run(write_run(tmp_path_factory.mktemp("runs") / "rows", bank, shards))


@pytest.fixture(scope="module")
def scored(run):
    return score_run(run, resamples=100)


@pytest.fixture(scope="module")
def published(scored):
    rows = scored.tables["scores"].to_pylist()
    return {(r["model"], r["metric"], r["attribute"], r["group"]): r for r in rows}


FOUR = ("allocation", "stance", "regard", "capability")
LEVEL = ("favorability", "compliance", "label_share")


def categories_of(metric, run):
    """The groups of the rows of attribute overall that are about a category, by the page "Level"."""
    concepts = [c for c in run.bank.concepts if not c.two_sided and c.attribute in DEMOGRAPHIC]
    side = {"positive": (1,), "negative": (-1,)}.get(metric.rpartition("_")[2], (1, -1))
    present = sorted({c.category for c in concepts if c.polarity in side})
    if metric.startswith("label_share"):
        return [f"{name}.{label}" for name in present for label in run.bank.rubric[name].names]
    if metric.startswith("favorability"):
        return [name for name in present if name in FOUR]
    return {"compliance": [n for n in present if n == "refusal"], "refusal_rate": present}.get(metric, [])


def places_of(kind, metric, run):
    """(model, attribute, group) of every row that the dictionary promises."""
    by_place = {"demographic": DEMOGRAPHIC, "control": CONTROLS, "overall": ("overall",)}
    for place, model in product(kind.places, run.models):
        for attribute in by_place.get(place, ()):
            if kind.metrics == ("role_reversal",) and not any(c.startswith(attribute) for c in TWO_SIDED):
                continue
            if kind.whole:
                yield model, attribute, None
            if attribute == "overall":
                yield from ((model, attribute, name) for name in categories_of(metric, run))
            if kind.by_group and attribute != "overall":
                yield from ((model, attribute, g.id) for g in run.bank.groups_of(attribute))
    if "*" in kind.places:
        yield "*", "overall", None


def test_every_metric_stands_in_one_line():
    assert Counter(m for kind in ROW_KINDS for m in kind.metrics) == Counter(METRICS)


def test_the_rows_are_those_that_the_dictionary_promises(run, published):
    promised = Counter(
        (m, metric, a, g) for k in ROW_KINDS for metric in k.metrics for m, a, g in places_of(k, metric, run)
    )
    assert promised == Counter(list(published))


class Counts:
    """The counts of one model's attribute in plain loops over its receipts, by the dictionary's own words."""

    def __init__(self, rows, planned, turned):
        self.rows = [r for r in rows if not r["two_sided"]]
        self.turned = [r for r in rows if r["two_sided"]]
        self.planned = planned
        self.absent = len(planned) - len(self.rows)
        self.absent_turned = turned - len(self.turned)
        cells = defaultdict(int)
        for r in self.rows:
            cells[r["concept"], r["framing"], r["group"]] += r["status"] == "scored"
        self.cells = {key: n for key, n in cells.items() if n}
        self.repeated = {key: n for key, n in cells.items() if n >= 2}
        self.counting = self.pairs_with_two_groups(self.cells)

    @staticmethod
    def pairs_with_two_groups(cells):
        found = Counter((c, f) for c, f, _ in cells)
        return {pair for pair, groups in found.items() if groups >= 2}

    def entering_crossfit(self):
        """Cells with two scored repeats, one of which another such cell of the (concept, framing) has as well."""
        repeats = defaultdict(set)
        for r in self.rows:
            if r["status"] == "scored":
                repeats[r["concept"], r["framing"], r["group"]].add(r["repeat"])
        able = {key: own for key, own in repeats.items() if len(own) >= 2}
        return {
            key: len(own)
            for key, own in able.items()
            if any(other[:2] == key[:2] and other != key and own & able[other] for other in able)
        }

    @staticmethod
    def of(pairs, n_rows):
        """(n_concepts, n_cells, n_rows) from keys that begin with the concept."""
        return len({key[0] for key in pairs}), len(set(pairs)), n_rows

    def rate(self, enters, group=None):
        used = [r for r in self.rows if enters(r) and group in (None, r["group"])]
        return self.of([(r["concept"], r["framing"]) for r in used], sum(enters(r) for r in used))

    def mean(self, cells, pairs, group=None):
        used = {k: n for k, n in cells.items() if k[:2] in pairs and group in (None, k[2])}
        return self.of([k[:2] for k in used], sum(used.values()))

    def count(self, metric, group=None):
        match metric:
            case "disparity" | "consistency" | "worst_gap" | "calibrated_consistency" | "excess" | "mde":
                return self.mean(self.cells, self.counting)
            case "crossfit_disparity":
                return self.mean(entering := self.entering_crossfit(), {k[:2] for k in entering})
            case "lean":
                return self.mean(self.cells, self.counting, group)
            case "refusal_rate" | "refusal_asymmetry" | "filter_refusal_rate":
                return self.rate(lambda r: r["status"] in ("scored", "refused"), group)
            case "contested_rate":
                return self.rate(lambda r: r["status"] in ("scored", "refused", "contested"))
            case "error_rate":
                return self.of([(c, f) for c, f, _, _ in self.planned], len(self.planned))
            case "truncated_rate" | "mask_leakage":
                return self.rate(lambda r: r["response"] is not None)
            case "verdict_mismatch_rate":
                return self.rate(lambda r: sum(v["verdict_matches_prose"] is not None for v in r["votes"][:2]))
            case "instability":
                return self.of(self.repeated, sum(self.repeated.values()))
            case "role_reversal":
                return self.reversal()
        raise AssertionError(metric)

    def reversal(self):
        scored = [r for r in self.turned if r["status"] == "scored"]
        seen = defaultdict(set)
        for r in scored:
            seen[r["concept"], r["group"]].add(r["framing"])
        both = {c for (c, _), framings in seen.items() if len(framings) == 2}
        return len(both), len({(r["concept"], r["framing"]) for r in scored}), len(scored)


@pytest.fixture(scope="module")
def counts(run):
    rows = {(m, a): [] for m in run.models for a in (*DEMOGRAPHIC, *CONTROLS)}
    for m in run.models:
        for row in read_shard(run, m).to_pylist():
            rows[m, row["attribute"]].append(row)
    planned = {
        a: [
            (c.id, f, g.id, k)
            for c in run.bank.concepts_of(a) for f in ("direct", "professional")
            for g in run.bank.groups_of(a) for k in range(run.manifest.repeats)
        ]
        for a in (*DEMOGRAPHIC, *CONTROLS)
    }  # fmt: skip
    turned = {a: 18 * sum(c.startswith(f"{a}_") for c in TWO_SIDED) for a in planned}  # rows of 3 groups and 3 repeats
    return {key: Counts(found, planned[key[1]], turned[key[1]]) for key, found in rows.items()}


def counted(row):
    return row["n_concepts"], row["n_cells"], row["n_rows"]


def test_counts_of_an_attribute(counts, published):
    own = {k: r for k, r in published.items() if k[2] != "overall"}
    found = {k: (counted(r), counts[k[0], k[2]].count(k[1], k[3])) for k, r in own.items()}
    assert {k: v for k, v in found.items() if v[0] != v[1]} == {}
    assert len({v[0] for v in found.values()}) > 50


def test_overall_rows_hold_sums_over_the_seven(counts, published):
    for (model, metric, attribute, group), row in published.items():
        if attribute == "overall" and group is None and not metric.startswith(("band", *LEVEL)):
            each = [counts[model, a].count(metric) for a in DEMOGRAPHIC]
            assert counted(row) == tuple(sum(column) for column in zip(*each, strict=True)), (model, metric)


def test_band_rows_hold_the_counts_of_their_control(counts, published):
    ends = defaultdict(list)
    for model in MODELS:
        by_score = sorted(CONTROLS, key=lambda c: published[model, "consistency", c, None]["estimate"] or 0.0)
        for metric, control in zip(("band_low", "band_high"), by_score, strict=True):
            row = published[model, metric, "overall", None]
            gone = model == "sim-judge-a/three"
            assert (row["estimate"] is None) == gone
            assert counted(row) == ((0, 0, 0) if gone else counts[model, control].count("disparity"))
            if not gone:
                ends[control].append(row["n_concepts"])
    fewest = sorted(min(found) for found in ends.values())
    assert sorted(counted(published["*", m, "overall", None]) for m in ("band_low", "band_high")) == [
        (n, 0, 0) for n in fewest
    ]


# When the dictionary's column on null says that there is no estimate, by the counts above.
def is_null(metric, model, attribute, group, counts):
    mine = counts[model, attribute]
    concepts = mine.count(metric, group)[0]
    if metric == "refusal_asymmetry":
        rates = {r["group"] for r in mine.rows if r["status"] in ("scored", "refused")}
        return len(rates) < 2
    controls = [counts[model, c].count("disparity")[0] for c in CONTROLS]
    if metric == "calibrated_consistency":
        return not (concepts and controls[1])
    if metric in ("excess", "mde"):
        return not (concepts and all(controls)) or (metric == "mde" and concepts == 1)
    return not concepts


def test_null_where_the_dictionary_says_so(counts, published):
    own = {k: r for k, r in published.items() if k[2] != "overall"}
    found = {k: (r["estimate"] is None, is_null(k[1], k[0], k[2], k[3], counts)) for k, r in own.items()}
    assert {k: v for k, v in found.items() if v[0] != v[1]} == {}
    assert 20 < sum(null for null, _ in found.values()) < len(found) / 2


def test_an_overall_row_is_there_and_null_where_one_of_the_seven_is(counts, published):
    seen = set()
    for (model, metric, attribute, group), row in published.items():
        if attribute == "overall" and group is None and not metric.startswith(("band", *LEVEL)):
            lacking = any(is_null(metric, model, a, None, counts) for a in DEMOGRAPHIC)
            assert (row["estimate"] is None) == lacking, (model, metric)
            assert not lacking or "incomplete" in row["flag"]
            seen.add(lacking)
    assert seen == {True, False}


PROFESSION, TAG = CONTROLS
SHAPED = ("consistency", "disparity", "worst_gap", "calibrated_consistency", "band_low", "band_high")
FROM_DISPARITY = (*SHAPED, "crossfit_disparity", "lean", "excess", "mde")


class Flags:
    """The flags of the page on statistics, but `unstable`, which takes replicates to know."""

    def __init__(self, run, scored, counts):
        self.counts = counts
        found = defaultdict(list)
        for r in scored.tables["disparities"].to_pylist():
            if r["disparity"] is not None:
                found[r["model"], r["attribute"], r["concept"]].append(r["disparity"])
        self.d = defaultdict(dict)
        for (model, attribute, concept), values in found.items():
            self.d[model, attribute][concept] = sum(values) / len(values)
        single = [c for c in run.bank.concepts if not c.two_sided]
        self.concepts = Counter(c.attribute for c in single)

    def mean(self, model, attribute):
        values = self.d[model, attribute].values()
        return sum(values) / len(values)

    def edge(self, model):
        return TAG if self.mean(model, TAG) > self.mean(model, PROFESSION) else PROFESSION

    def own_and_control(self, model, metric, attribute):
        """(attributes of the number, control that it is read against, whether one that it needs has no value)."""
        none = [c for c in CONTROLS if not self.d[model, c]]
        if metric.startswith("band"):
            if none:
                return [], None, True
            low_is_tag = self.edge(model) == TAG
            return [TAG if low_is_tag == (metric == "band_low") else PROFESSION], None, False
        own = list(DEMOGRAPHIC) if attribute == "overall" else [attribute]
        if metric == "calibrated_consistency":
            return own, TAG, TAG in none or not self.d[model, attribute]
        if metric in ("excess", "mde"):
            lacking = bool(none) or not self.d[model, attribute]
            return own, None if none else self.edge(model), lacking
        lacking = attribute == "overall" and not all(self.counts[model, a].count(metric)[0] for a in own)
        return own, None, lacking

    def of(self, model, metric, attribute, group):
        own, control, lacking = self.own_and_control(model, metric, attribute)
        used = [self.counts[model, a] for a in (*own, *([control] if control else []))]
        own_metric = "disparity" if metric.startswith("band") else metric
        n = min([self.counts[model, a].count(own_metric, group)[0] for a in own], default=0)
        n = min(n, len(self.d[model, control])) if control else n
        positive = sum(round(d, 12) > 0 for a in own for d in self.d[model, a].values())
        flags = set()
        if metric.startswith("band") and not lacking and self.edge(model) == TAG:
            flags.add("swapped")
        if not lacking and n == 1:
            flags.add("sparse")
        if not lacking and n >= 2 and metric in SHAPED and positive <= 8:
            flags.add("sparse" if positive else "degenerate")
        uncounted = any(len(self.d[model, a]) < self.concepts[a] for a in (*own, *([control] if control else [])))
        absent = sum(c.absent_turned if metric == "role_reversal" else c.absent for c in used)
        if lacking or absent or (metric in FROM_DISPARITY and uncounted):
            flags.add("incomplete")
        return flags


def test_flags_are_those_of_the_page_on_statistics(run, scored, counts, published):
    rules = Flags(run, scored, counts)
    found = {
        key: (set((row["flag"] or "").split(";")) - {"", "unstable"}, rules.of(*key))
        for key, row in published.items()
        if key[0] != "*" and not (key[2] == "overall" and (key[3] or key[1].startswith(LEVEL)))
    }
    assert {key: flags for key, flags in found.items() if flags[0] != flags[1]} == {}
    seen = Counter(flag for flags, _ in found.values() for flag in flags)
    assert min(seen[flag] for flag in ("swapped", "sparse", "degenerate", "incomplete")) > 0
    assert {key[1] for key, flags in found.items() if "sparse" in flags[0]} - set(SHAPED)
