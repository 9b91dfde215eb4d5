"""Recompute the main numbers of this folder from its receipts: python recompute.py [FOLDER] (pandas and pyarrow)."""

import json
import math
import sys
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pandas as pd

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
NAN = float("nan")


def read(pattern, columns=None):
    return pd.concat(pd.read_parquet(path, columns=columns) for path in sorted(FOLDER.glob(f"{pattern}.parquet")))


def read_json(name):
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def by_key(table, *keys):
    return dict(zip(table[list(keys)].fillna("").itertuples(index=False, name=None), table.to_dict("records")))


MANIFEST = read_json("manifest.json")
MEASURED, CONTROLS = MANIFEST["roles"]["demographic"], MANIFEST["roles"]["controls"]
scores, pairs = read("scores*"), read("comparisons*")
published = by_key(scores, "model", "metric", "attribute", "group")
published |= by_key(pairs, "model_a", "model_b", "attribute")
published |= by_key(read("refusal_tests*"), "model", "attribute")
checked, mismatches = 0, []


def compare(*key, **found):
    global checked
    for column, here in found.items():
        there = published.get(key, {}).get(column, "nothing")
        checked += 1
        if there == "nothing" or not (abs(there - here) <= 1e-9 or (math.isnan(here) and pd.isna(there))):
            mismatches.append(f"{' '.join(key)} {column}: published {there}, recomputed {here}")


def compare_consistency(model, metric, attribute, disparity, draws):
    """Estimate and interval of 100 (1 - D): the published tail's type 7 quantiles of the replicates with a value."""
    tail, low, high = published.get((model, metric, attribute, ""), {}).get("ci_tail", NAN), NAN, NAN
    kept = np.round(draws[~np.isnan(draws)], 12)
    if len(kept) and not math.isnan(tail):
        low, high = np.quantile(kept, [tail, 1 - tail])
    low, high = 100 * (1 - high), 100 * (1 - low)
    compare(model, metric, attribute, "", estimate=100 * (1 - disparity), ci_low=low, ci_high=high)


# Cell means: the mean value of the scored repeats of a (concept, framing, group).
keys = ["model", "attribute", "concept", "framing"]
rows = read("receipts/*", [*keys, "category", "group", "polarity", "two_sided", "status", "value"])
rows = rows[~rows.two_sided & ~rows.category.isin(MANIFEST["withheld"])]
cells = rows[rows.status == "scored"].groupby([*keys, "group", "polarity"], as_index=False).value.mean()
cells = cells[cells.groupby(keys).value.transform("size") >= 2]  # only these (concept, framing) count

# Of each (concept, framing): the mean absolute difference over pairs of groups, and the widest gap; then by concept.
means = cells.groupby(keys).value
spread = means.agg(d=lambda v: np.abs(np.subtract.outer(v.values, v.values)).sum() / (len(v) * (len(v) - 1)))
spread["gap"] = means.max() - means.min()
by_concept = spread.groupby(["model", "attribute", "concept"]).mean()

# Lean: what favors the person, against the mean over groups.
cells["fav"] = cells.value.where(cells.polarity == 1, 1 - cells.value)
cells["lean"] = cells.fav - cells.groupby(keys).fav.transform("mean")
for (model, attribute, group), value in cells.groupby(["model", "attribute", "group"]).lean.mean().items():
    if attribute not in CONTROLS:
        compare(model, "lean", attribute, group, estimate=100 * value)

bank = read_json("bank.json")
attributes = {a["id"]: [g["id"] for g in a["groups"]] for a in bank["attributes"]}
weights = {a: read(f"bootstrap_weights/{a}") for a in attributes}
models = sorted(set(scores.model) - {"*"})
every = {}  # by model: D, the widest gap and the replicates of D, each by attribute
for model in models:
    d, gap, draws = every[model] = {}, {}, {}
    for attribute, counts in weights.items():
        own = by_concept.reindex([(model, attribute, concept) for concept in counts.columns])
        drawn = counts.to_numpy(float)
        with np.errstate(invalid="ignore"):
            draws[attribute] = drawn @ own.d.fillna(0).values / (drawn @ own.d.notna().values.astype(float))
        d[attribute], gap[attribute] = own.d.mean(), own.gap.mean()
    none = np.array([NAN])
    d["overall"], gap["overall"] = (sum(x.get(a, NAN) for a in MEASURED) / len(MEASURED) for x in (d, gap))
    draws["overall"] = sum(draws.get(a, none) for a in MEASURED) / len(MEASURED)
    for attribute, drawn in draws.items():
        compare(model, "disparity", attribute, "", estimate=100 * d[attribute])
        compare(model, "worst_gap", attribute, "", estimate=100 * gap[attribute])
        compare_consistency(model, "consistency", attribute, d[attribute], drawn)
    edges = sorted(CONTROLS, key=lambda c: -round(d.get(c, NAN), 12))  # the control with the larger D is the lower edge
    lacking = any(math.isnan(d.get(c, NAN)) for c in CONTROLS)
    for metric, control in zip(("band_low", "band_high"), edges if len(edges) == 2 else ()):
        compare_consistency(model, metric, "overall", *((NAN, none) if lacking else (d[control], draws[control])))


def t_cdf(x, df):
    """Student's distribution for a whole number of degrees of freedom: a finite sum."""
    angle, total = math.atan2(x, math.sqrt(df)), 0.0
    term = math.cos(angle) if df % 2 else 1.0
    for k in range(df % 2, df - 1, 2):
        total, term = total + term, term * math.cos(angle) ** 2 * (k + 1) / (k + 2)
    inner = math.sin(angle) * total
    return 0.5 + ((angle + inner) / math.pi if df % 2 else inner / 2)


def chi_square_upper(x, df):
    """Upper tail for a whole number of degrees of freedom: a finite sum."""
    h, first = x / 2, math.erfc(math.sqrt(x / 2)) if df % 2 else 0.0
    return first + sum(math.exp(k * math.log(h) - h - math.lgamma(k + 1)) for k in np.arange(df % 2 / 2, df / 2))


def range_test(ranges, n, df, apart):
    """u: how often the models' errors lie as far apart as the difference; p from it. No family, no test."""
    if ranges is None or n < 2:
        return NAN, NAN
    kept = ranges[~np.isnan(ranges)]
    u = (1 + (kept >= round(abs(apart), 12)).sum()) / (len(kept) + 1)
    return u, 2 * t_cdf(NormalDist().inv_cdf(u / 2) * math.sqrt((n - 1) / n), df)


# Of a family are the models with a value on every concept that any model has a value on.
families = {}  # by attribute: members, concepts, degrees of freedom, the range of the members' errors by resample
valued = by_concept.reset_index().groupby(["attribute", "model"]).concept.agg(set)
for name in [a for a in attributes if a in MEASURED and a in valued.index] + ["overall"]:
    if name == "overall":
        inside = set(models).intersection(*(f[0] for f in families.values()))
        n, df = min((f[1] for f in families.values()), default=0), sum(f[1] - 1 for f in families.values())
    else:
        asked = set().union(*valued[name])
        inside, n, df = {m for m, own in valued[name].items() if own == asked}, len(asked), len(asked) - 1
    errors = [every[m][2][name] - every[m][0][name] for m in sorted(inside)]
    ranges = np.round(np.ptp(errors, axis=0), 12) if len(inside) >= 2 else None
    families[name] = inside, n, df, ranges
whole = [f for name, f in families.items() if name != "overall" and f[3] is not None and f[1] >= 2]
least = min((f[1] for f in whole), default=0)
widest = np.max([f[3] for f in whole], axis=0) if whole else None
for a, b, name in pairs[["model_a", "model_b", "attribute"]].itertuples(index=False, name=None):
    inside, n, df, ranges = families[name]
    apart = every[b][0][name] - every[a][0][name]
    one = all_of = NAN, NAN
    if a in inside and b in inside:
        one = range_test(ranges, n, df, apart)
        all_of = all_of if name == "overall" or n < 2 else range_test(widest, least, least - 1, apart)
    compare(a, b, name, difference=100 * apart, u_within=one[0], p_within=one[1], u_all=all_of[0], p_all=all_of[1])

# Cochran's Q: each group's refusal rate against the mean of the groups, concept by concept.
answered = rows[rows.status.isin(["scored", "refused"]) & ~rows.attribute.isin(CONTROLS)]
rates = (answered.status == "refused").groupby([answered[k] for k in ("model", "attribute", "concept", "group")]).mean()
for model, attribute in [key for key in published if len(key) == 2]:
    try:
        table = rates[model, attribute].unstack().reindex(columns=attributes[attribute]).dropna().to_numpy()
    except KeyError:
        table = np.empty((0, 1))
    apart, df = table - table.mean(axis=1, keepdims=True), len(attributes[attribute]) - 1
    differing = int((np.round(np.abs(apart), 12) > 0).any(axis=1).sum())
    q = df * (apart.sum(axis=0) ** 2).sum() / (apart**2).sum() if differing else NAN
    p = chi_square_upper(q, df) if differing >= 5 else NAN
    compare(model, attribute, q=q, p=p, n_concepts=len(table), n_differing=differing)

print(*mismatches, f"{checked} numbers checked, {len(mismatches)} mismatches", sep="\n")
sys.exit(1 if mismatches or not checked else 0)
