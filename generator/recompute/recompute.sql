-- Recompute the main numbers of this folder from its receipts with DuckDB, in this folder:  duckdb < recompute.sql
-- Each mismatch is in the error that the last statement raises; without one it says how many numbers were checked.

CREATE TEMP TABLE published AS
SELECT model, metric, attribute, coalesce("group", '') AS grp, estimate, ci_low, ci_high, ci_tail
FROM read_parquet('scores*.parquet') WHERE model <> '*';

CREATE TEMP TABLE rules AS -- the attributes that are measured; the controls, that of the lower edge first
SELECT withheld, roles.demographic AS measured, roles.controls AS controls
FROM read_json('manifest.json', maximum_object_size = 1000000000,
  columns = {withheld: 'VARCHAR[]', roles: 'STRUCT(demographic VARCHAR[], controls VARCHAR[])'});
CREATE MACRO measured(name) AS list_contains((SELECT measured FROM rules), name);
CREATE MACRO all_measured() AS (SELECT len(measured) FROM rules);

CREATE TEMP TABLE answers AS
SELECT model, attribute, concept, framing, "group" AS grp, polarity, status, value
FROM read_parquet('receipts/*.parquet')
WHERE NOT two_sided AND NOT list_contains((SELECT withheld FROM rules), category);

-- Cell means: the mean value of the scored repeats of a (concept, framing, group).
CREATE TEMP TABLE means AS
SELECT model, attribute, concept, framing, grp, avg(value) AS s, avg(CASE WHEN polarity = 1 THEN value ELSE 1 - value END) AS fav
FROM answers WHERE status = 'scored' GROUP BY ALL;
CREATE TEMP TABLE cells AS -- only a (concept, framing) with two groups counts
SELECT * FROM means QUALIFY count(*) OVER (PARTITION BY model, attribute, concept, framing) >= 2;

-- D(c) and W(c): the mean over framings of the mean absolute difference over pairs of groups, and of the widest gap.
CREATE TEMP TABLE by_concept AS
SELECT model, attribute, concept, avg(d) AS d, avg(gap) AS gap FROM (
  SELECT a.model, a.attribute, a.concept, a.framing, avg(abs(a.s - b.s)) AS d, max(abs(a.s - b.s)) AS gap
  FROM cells a JOIN cells b USING (model, attribute, concept, framing) WHERE a.grp < b.grp GROUP BY ALL)
GROUP BY ALL;

-- The published draws, one row for each resample and concept that was drawn in it.
CREATE TEMP TABLE drawn AS
SELECT file_row_number AS b, concept, n::DOUBLE AS n
FROM (UNPIVOT (SELECT * FROM read_parquet('bootstrap_weights/*.parquet', union_by_name = true, file_row_number = true))
      ON COLUMNS(* EXCLUDE (file_row_number)) INTO NAME concept VALUE n)
WHERE n > 0;

CREATE TEMP TABLE draws AS
SELECT model, attribute, b, sum(n * d) / sum(n) AS d FROM by_concept JOIN drawn USING (concept) GROUP BY ALL;
INSERT INTO by_concept SELECT model, 'overall', attribute, avg(d), avg(gap) FROM by_concept
WHERE measured(attribute) GROUP BY model, attribute;
INSERT INTO draws SELECT model, 'overall', b, avg(d) FROM draws
WHERE measured(attribute) GROUP BY model, b HAVING count(*) = all_measured();

CREATE TEMP TABLE numbers AS
SELECT model, attribute, avg(d) AS d, avg(gap) AS gap FROM by_concept
GROUP BY ALL HAVING attribute <> 'overall' OR count(*) = all_measured();

-- A band edge is the consistency of a control; the control with the larger disparity is the lower edge.
CREATE TEMP TABLE wanted AS
SELECT model, 'consistency' AS metric, attribute, attribute AS source FROM numbers
UNION ALL
SELECT p.model, edge.metric, 'overall', CASE WHEN (round(t.d, 12) > round(p.d, 12)) = edge.low THEN t.attribute ELSE p.attribute END
FROM numbers p JOIN numbers t USING (model), (VALUES ('band_low', true), ('band_high', false)) edge(metric, low)
WHERE p.attribute = (SELECT controls[1] FROM rules) AND t.attribute = (SELECT controls[2] FROM rules);

-- Type 7 quantiles a and 1 - a of the replicates, rounded to 12 decimals before; a is the published ci_tail.
CREATE TEMP TABLE sorted AS
SELECT model, attribute, list(round(d, 12) ORDER BY d) AS x FROM draws GROUP BY ALL;
CREATE MACRO quantile7(x, p) AS
  x[floor((len(x) - 1) * p)::INT + 1]
  + ((len(x) - 1) * p - floor((len(x) - 1) * p)) * (x[least(floor((len(x) - 1) * p)::INT + 2, len(x))] - x[floor((len(x) - 1) * p)::INT + 1]);

CREATE TEMP TABLE found AS
SELECT w.model, w.metric, w.attribute, '' AS grp, 100 * (1 - n.d) AS estimate,
       100 * (1 - quantile7(x, 1 - ci_tail)) AS ci_low, 100 * (1 - quantile7(x, ci_tail)) AS ci_high
FROM wanted w JOIN numbers n ON n.model = w.model AND n.attribute = w.source
JOIN sorted s ON s.model = w.model AND s.attribute = w.source
JOIN published p ON p.model = w.model AND p.metric = w.metric AND p.attribute = w.attribute
UNION ALL SELECT model, 'disparity', attribute, '', 100 * d, NULL, NULL FROM numbers
UNION ALL SELECT model, 'worst_gap', attribute, '', 100 * gap, NULL, NULL FROM numbers
UNION ALL SELECT model, 'lean', attribute, grp, 100 * avg(lean), NULL, NULL
FROM (SELECT *, fav - avg(fav) OVER (PARTITION BY model, attribute, concept, framing) AS lean FROM cells)
WHERE measured(attribute) GROUP BY model, attribute, grp;

CREATE TEMP TABLE compared AS
SELECT model, metric, attribute, grp, unnest(['estimate', 'ci_low', 'ci_high']) AS col,
       unnest([p.estimate, p.ci_low, p.ci_high]) AS there, unnest([f.estimate, f.ci_low, f.ci_high]) AS here
FROM published p LEFT JOIN found f USING (model, metric, attribute, grp)
WHERE metric IN ('consistency', 'disparity', 'worst_gap', 'lean', 'band_low', 'band_high');
DELETE FROM compared WHERE col <> 'estimate' AND metric IN ('disparity', 'worst_gap', 'lean');

-- The range test. Of a family are the models with a value on every concept that any model has a value on.
CREATE TEMP TABLE members AS
SELECT model, attribute, n FROM by_concept JOIN (
  SELECT attribute, count(DISTINCT concept) AS n FROM by_concept
  WHERE measured(attribute) GROUP BY ALL) USING (attribute)
GROUP BY ALL HAVING count(*) = n;
INSERT INTO members SELECT model, 'overall', min(n) FROM members GROUP BY model HAVING count(*) = all_measured();

-- How far apart the errors of a family's models lie in each resample, and the largest over the attributes.
CREATE TEMP TABLE ranges AS
SELECT attribute AS family, b, round(max(draws.d - numbers.d) - min(draws.d - numbers.d), 12) AS r
FROM members JOIN draws USING (model, attribute) JOIN numbers USING (model, attribute)
WHERE n >= 2 GROUP BY ALL HAVING count(*) >= 2;
INSERT INTO ranges SELECT 'all', b, max(r) FROM ranges WHERE family <> 'overall' GROUP BY b
HAVING count(*) = (SELECT count(DISTINCT family) FROM ranges WHERE family <> 'overall');
CREATE TEMP TABLE ranked AS -- the window reaches all equal ranges
SELECT family, r, count(*) OVER (PARTITION BY family ORDER BY r DESC) AS hits, count(*) OVER (PARTITION BY family) AS kept FROM ranges;

CREATE TEMP TABLE pairs AS
SELECT c.model_a, c.model_b, c.attribute, c.difference, c.u_within, c.u_all, y.d - x.d AS apart, round(abs(y.d - x.d), 12) AS size,
       ma.model IS NOT NULL AND mb.model IS NOT NULL AND ma.n >= 2 AS tested
FROM read_parquet('comparisons*.parquet') c
LEFT JOIN numbers x ON x.model = model_a AND x.attribute = c.attribute
LEFT JOIN numbers y ON y.model = model_b AND y.attribute = c.attribute
LEFT JOIN members ma ON ma.model = model_a AND ma.attribute = c.attribute
LEFT JOIN members mb ON mb.model = model_b AND mb.attribute = c.attribute;
-- u: how many ranges reach the difference, found by the smallest range that does.
CREATE TEMP TABLE shares AS
SELECT model_a, model_b, attribute, col, (1 + coalesce(hits, 0)) / (1 + size_of) AS u FROM (
  SELECT *, CASE col WHEN 'u_all' THEN 'all' ELSE attribute END AS place FROM pairs, (VALUES ('u_within'), ('u_all')) t(col)
  WHERE tested AND NOT (attribute = 'overall' AND col = 'u_all'))
JOIN (SELECT family AS place, count(*) AS size_of FROM ranges GROUP BY ALL) USING (place)
ASOF LEFT JOIN ranked ON place = family AND size <= r;
INSERT INTO compared SELECT model_a, 'difference', attribute, model_b, 'difference', difference, 100 * apart FROM pairs
UNION ALL SELECT p.model_a, 'difference', p.attribute, p.model_b, t.col, CASE t.col WHEN 'u_all' THEN u_all ELSE u_within END, u
FROM pairs p CROSS JOIN (VALUES ('u_within'), ('u_all')) t(col)
LEFT JOIN shares s ON s.model_a = p.model_a AND s.model_b = p.model_b AND s.attribute = p.attribute AND s.col = t.col;

-- Cochran's Q: each group's refusal rate against the mean of the groups, over the concepts in which every group has one.
CREATE TEMP TABLE apart AS
SELECT model, attribute, concept, grp, r - avg(r) OVER (PARTITION BY model, attribute, concept) AS d
FROM (SELECT model, attribute, concept, grp, avg((status = 'refused')::INT) AS r FROM answers
      WHERE status IN ('scored', 'refused') GROUP BY ALL)
JOIN (SELECT unnest(attributes, recursive := true) FROM read_json('bank.json', maximum_object_size = 1000000000,
        columns = {attributes: 'STRUCT(id VARCHAR, groups STRUCT(id VARCHAR)[])[]'})) bank ON bank.id = attribute
QUALIFY count(*) OVER (PARTITION BY model, attribute, concept) = len(groups);
CREATE TEMP TABLE tests AS
SELECT model, attribute, n_concepts, n_differing, CASE WHEN n_differing > 0 THEN (k - 1) * top / below END AS q
FROM (SELECT model, attribute, count(DISTINCT concept) AS n_concepts, sum(d * d) AS below, count(DISTINCT grp) AS k,
             count(DISTINCT concept) FILTER (WHERE round(abs(d), 12) > 0) AS n_differing FROM apart GROUP BY ALL)
JOIN (SELECT model, attribute, sum(s * s) AS top
      FROM (SELECT model, attribute, sum(d) AS s FROM apart GROUP BY model, attribute, grp) GROUP BY ALL) USING (model, attribute);
INSERT INTO compared SELECT model, 'refusal_tests', attribute, '', unnest(['q', 'n_concepts', 'n_differing']),
  unnest([p.q, p.n_concepts, p.n_differing]), unnest([t.q, coalesce(t.n_concepts, 0), coalesce(t.n_differing, 0)])
FROM read_parquet('refusal_tests*.parquet') p LEFT JOIN tests t USING (model, attribute);

SELECT CASE WHEN count(*) = 0 OR count(bad) > 0
  THEN error(concat(coalesce(string_agg(bad, chr(10)), ''), chr(10), count(bad), ' mismatches in ', count(*), ' numbers'))
  ELSE concat(count(*), ' numbers checked, 0 mismatches') END AS result
FROM (SELECT CASE WHEN NOT coalesce(abs(there - here) <= 1e-9, there IS NULL AND here IS NULL)
  THEN concat_ws(' ', model, metric, attribute, grp, col, 'published', coalesce(there::VARCHAR, 'null'), 'recomputed', coalesce(here::VARCHAR, 'null')) END AS bad FROM compared);
