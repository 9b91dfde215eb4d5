// Which rows pass the filters, and how many would stand behind each choice. A row that fails exactly one filter still
// counts for that filter's own choices. What a place of the plan decides is decided once for all models, and counted
// once at the end: a run has a hundred times fewer places than rows.

export const IN_PLAN = ["attribute", "category", "concept", "group", "framing"];

/** For each place of the plan how many of the plan's own filters it fails, and the last of those. */
function placesFor({ index, plan }, codes) {
  const fails = new Uint8Array(index.size);
  const which = new Uint8Array(index.size);
  codes.forEach((code, k) => {
    if (code < 0) return;
    const own = plan[IN_PLAN[k]];
    for (let p = 0; p < fails.length; p++) if (own[p] !== code) { fails[p]++; which[p] = k; }
  });
  return { fails, which };
}

function noneYet({ index, columns, statuses, labels }) {
  return {
    passed: new Uint32Array(index.size), nearly: new Uint32Array(index.size), model: new Uint32Array(columns.length),
    status: new Uint32Array(statuses.length), label: new Uint32Array(labels.length),
    flags: new Uint32Array(1 << index.flags.length), contested: 0, unlabeled: 0,
  };
}

/**
 * Find rows in their order, `limit` of them at most, as model * size + place; `want` holds a code, or -1, for each
 * select and the bits of the boxes. Only a scan without a limit has counted every choice.
 */
export function scan(all, want, hits, limit) {
  const { columns, statusOf, labelOf } = all;
  const size = all.index.size;
  const { fails, which } = placesFor(all, want.plan);
  const rows = [];
  const n = noneYet(all);
  const isContested = all.statuses.indexOf("contested");
  for (let m = 0; m < columns.length; m++) {
    const { outcome, flags } = columns[m];
    const other = want.model >= 0 && want.model !== m ? 1 : 0;
    for (let p = 0; p < size; p++) {
      const o = outcome[p];
      if (o === 0 || fails[p] + other > 1) continue;
      // A row without the text fails no filter of the form: it is out of every count.
      if (hits && !hits.at.has(m * size + p)) continue;
      const s = statusOf[o];
      const l = labelOf[o];
      const badStatus = want.status >= 0 && want.status !== s ? 1 : 0;
      const badLabel = want.label >= 0 && want.label !== l ? 1 : 0;
      const bad = fails[p] + other + badStatus + badLabel;
      if (bad > 1 || (flags[p] & want.flags) !== want.flags || (want.contested && s !== isContested)) continue;
      if (bad === 0) {
        rows.push(m * size + p);
        if (rows.length === limit) return { rows, which, n };
        n.passed[p]++;
        n.flags[flags[p]]++;
        if (s === isContested) n.contested++;
      } else if (fails[p]) n.nearly[p]++;
      if (bad === other) n.model[m]++;
      if (bad === badStatus) n.status[s]++;
      if (bad === badLabel && l >= 0) n.label[l]++;
      else if (bad === badLabel) n.unlabeled++;
    }
  }
  return { rows, which, n };
}

/** What stands behind each choice and each box, from a whole scan. */
export function countsOf({ index, plan }, { which, n }) {
  const counts = { model: n.model, status: n.status, label: n.label };
  IN_PLAN.forEach((name, k) => {
    const own = new Uint32Array(plan.names[name].length);
    for (let p = 0; p < index.size; p++) own[plan[name][p]] += n.passed[p] + (which[p] === k ? n.nearly[p] : 0);
    counts[name] = own;
  });
  const boxes = index.flags.map((_, k) => n.flags.reduce((sum, count, bits) => sum + (bits & (1 << k) ? count : 0), 0));
  return { counts, boxes: [...boxes, n.contested], unlabeled: n.unlabeled };
}
