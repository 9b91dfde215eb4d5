// The index of a run's rows. One planned row of one model is (model, place); every property of it is a small code in a
// typed array, so that all rows of a run are filtered at once. generator/receipts/explorer.py writes both files.

/** Spread the plan into codes by place: attribute, category, concept, group, framing, repeat. */
function planOf(index) {
  const codes = () => new Uint16Array(index.size);
  const plan = {
    attribute: codes(), category: codes(), concept: codes(), group: codes(), framing: codes(), repeat: codes(),
    names: { attribute: [], category: [], concept: [], group: [], framing: [] },
    title: [], // of each concept
    place: new Map(), // of each concept's first row
  };
  const code = (kind, name) => {
    const found = plan.names[kind].indexOf(name);
    return found < 0 ? plan.names[kind].push(name) - 1 : found;
  };
  let place = 0;
  index.attributes.forEach((attribute, a) => {
    plan.names.attribute.push(attribute.id);
    const groups = attribute.groups.map((group) => plan.names.group.push(`${attribute.id}.${group.id}`) - 1);
    for (const concept of attribute.concepts) {
      const c = plan.names.concept.push(concept.id) - 1;
      plan.title.push(concept.title);
      const category = code("category", concept.category);
      plan.place.set(concept.id, place);
      for (const framing of attribute.framings.map((name) => code("framing", name))) {
        for (const group of groups) {
          for (let repeat = 0; repeat < index.repeats; repeat++, place++) {
            plan.attribute[place] = a;
            plan.category[place] = category;
            plan.concept[place] = c;
            plan.group[place] = group;
            plan.framing[place] = framing;
            plan.repeat[place] = repeat;
          }
        }
      }
    }
  });
  return plan;
}

/** Cut rows.bin into each model's outcome (uint16, 0 = no such row) and flags (uint8). */
function columnsOf(index, buffer) {
  const size = index.size;
  const stride = 2 * size + size + (size % 2);
  if (buffer.byteLength !== stride * index.models.length) throw new Error("the index of rows is incomplete");
  return index.models.map((_, m) => ({
    outcome: new Uint16Array(buffer, m * stride, size),
    flags: new Uint8Array(buffer, m * stride + 2 * size, size),
  }));
}

/** Join rows.json (parsed) and rows.bin (its bytes) to what filters, table and search read. */
export function openIndex(index, buffer) {
  const statuses = [...new Set(index.outcomes.map((o) => o.status))];
  const labels = [...new Set(index.outcomes.map((o) => o.label).filter((label) => label !== null))];
  return {
    index,
    plan: planOf(index),
    columns: columnsOf(index, buffer),
    statuses,
    labels,
    // By outcome; outcome 0 is a row that was never asked for, and label -1 a row without one.
    statusOf: [-1, ...index.outcomes.map((o) => statuses.indexOf(o.status))],
    labelOf: [-1, ...index.outcomes.map((o) => labels.indexOf(o.label))],
  };
}

/** The place of a published row, or -1 where the plan has none. */
export function placeOf({ index, plan }, row) {
  const start = plan.place.get(row.concept);
  if (start === undefined) return -1;
  const attribute = index.attributes[plan.attribute[start]];
  const f = attribute.framings.indexOf(row.framing);
  const g = attribute.groups.findIndex((group) => group.id === row.group);
  return f < 0 || g < 0 ? -1 : start + (f * attribute.groups.length + g) * index.repeats + Number(row.repeat);
}
