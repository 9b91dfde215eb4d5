# Recompute the main numbers of this folder from its receipts, with base R on the CSV files:  Rscript recompute.R [FOLDER]
args <- commandArgs(trailingOnly = TRUE)
folder <- if (length(args)) args[1] else "."

# Base R has no fast CSV reader: name the columns that are used, the others are skipped while reading.
read <- function(pattern, wanted = NULL) {
  files <- Sys.glob(file.path(folder, "csv", paste0(pattern, ".csv")))
  do.call(rbind, lapply(files, function(path) {
    header <- strsplit(readLines(path, 1), ",")[[1]]
    classes <- if (is.null(wanted)) NA else ifelse(header %in% wanted, NA, "NULL")
    read.csv(path, colClasses = classes, na.strings = "", check.names = FALSE, encoding = "UTF-8")
  }))
}
key <- function(...) paste(..., sep = "|")
manifest <- paste(readLines(file.path(folder, "manifest.json"), warn = FALSE, encoding = "UTF-8"), collapse = "")
ids <- function(name) {
  list <- regmatches(manifest, regexpr(paste0("\"", name, "\": *\\[[^]]*\\]"), manifest))
  regmatches(list, gregexpr("[a-z0-9_]+", list))[[1]][-1]
}
withheld <- ids("withheld")
measured <- ids("demographic")
controls <- ids("controls")

scores <- read("scores*")
scores <- scores[scores$model != "*", ]
rownames(scores) <- key(scores$model, scores$metric, scores$attribute, ifelse(is.na(scores$group), "", scores$group))
checked <- 0
mismatches <- character(0)
compare <- function(name, column, here, published = scores) {
  there <- as.numeric(published[name, column])
  checked <<- checked + 1
  same <- if (is.na(there) || is.na(here)) is.na(there) && is.na(here) && name %in% rownames(published) else abs(there - here) <= 1e-9
  if (!same) mismatches <<- c(mismatches, paste(name, column, "published", there, "recomputed", here))
}
# Estimate and interval of 100 (1 - D): type 7 quantiles of the replicates that have a value, rounded to 12 decimals.
compare_consistency <- function(name, disparity, draws) {
  a <- as.numeric(scores[name, "ci_tail"])
  kept <- round(draws[!is.na(draws)], 12)
  q <- if (length(kept) && !is.na(a)) quantile(kept, c(a, 1 - a), type = 7, names = FALSE) else c(NA, NA)
  compare(name, "estimate", 100 * (1 - disparity))
  compare(name, "ci_low", 100 * (1 - q[2]))
  compare(name, "ci_high", 100 * (1 - q[1]))
}

# Cell means: the mean value of the scored repeats of a (concept, framing, group); two groups make a (concept, framing) count.
rows <- read("receipts/*", c("model", "attribute", "concept", "framing", "group", "category", "polarity", "two_sided", "status", "value"))
rows <- rows[rows$two_sided == "false" & !(rows$category %in% withheld), ]
cells <- aggregate(value ~ polarity + group + framing + concept + attribute + model, rows[rows$status == "scored", ], mean)
cells$cell <- key(cells$model, cells$attribute, cells$concept, cells$framing)
cells <- cells[ave(cells$value, cells$cell, FUN = length) >= 2, ]

# Of each (concept, framing): the mean absolute difference over pairs of groups, and the widest gap; then by concept.
first <- !duplicated(cells$cell)
spread <- cells[first, c("model", "attribute", "concept", "cell")]
spread$d <- tapply(cells$value, cells$cell, function(v) mean(dist(v, method = "manhattan")))[spread$cell]
spread$gap <- tapply(cells$value, cells$cell, function(v) diff(range(v)))[spread$cell]
by_concept <- aggregate(cbind(d, gap) ~ concept + attribute + model, spread, mean)

# Lean: what favors the person, against the mean over groups.
cells$fav <- ifelse(cells$polarity == 1, cells$value, 1 - cells$value)
cells$lean <- cells$fav - ave(cells$fav, cells$cell)
lean <- aggregate(lean ~ group + attribute + model, cells[!(cells$attribute %in% controls), ], mean)
for (i in seq_len(nrow(lean))) compare(key(lean$model[i], "lean", lean$attribute[i], lean$group[i]), "estimate", 100 * lean$lean[i])

attributes <- setdiff(unique(scores$attribute), "overall")
weights <- lapply(setNames(nm = attributes), function(a) as.matrix(read(file.path("bootstrap_weights", a))))
every <- list() # by model: D and its replicates, by attribute
for (model in unique(scores$model)) {
  d <- gap <- setNames(rep(NA_real_, length(attributes)), attributes)
  draws <- list()
  for (a in attributes) {
    own <- by_concept[by_concept$model == model & by_concept$attribute == a, ]
    own <- own[match(colnames(weights[[a]]), own$concept), ]
    has <- !is.na(own$d)
    draws[[a]] <- as.vector((weights[[a]][, has, drop = FALSE] %*% own$d[has]) / rowSums(weights[[a]][, has, drop = FALSE]))
    if (any(has)) d[a] <- mean(own$d[has])
    if (any(has)) gap[a] <- mean(own$gap[has])
  }
  d["overall"] <- mean(d[measured])
  gap["overall"] <- mean(gap[measured])
  draws[["overall"]] <- if (is.na(d["overall"])) NA else Reduce(`+`, draws[measured]) / length(measured)
  every[[model]] <- list(d = d, draws = draws)
  for (a in names(d)) {
    compare(key(model, "disparity", a, ""), "estimate", 100 * d[[a]])
    compare(key(model, "worst_gap", a, ""), "estimate", 100 * gap[[a]])
    compare_consistency(key(model, "consistency", a, ""), d[[a]], draws[[a]])
  }
  swapped <- isTRUE(round(d[controls[2]], 12) > round(d[controls[1]], 12)) # the control with the larger D is the lower edge
  edges <- if (swapped) rev(controls) else controls
  for (i in seq_along(edges)[length(edges) == 2]) {
    name <- key(model, c("band_low", "band_high")[i], "overall", "")
    if (anyNA(d[controls])) compare_consistency(name, NA, NA) else compare_consistency(name, d[[edges[i]]], draws[[edges[i]]])
  }
}

# The range test: u says how often the models' errors lie as far apart as the difference, p follows. Of a family are the
# models with a value on every concept that any model has a value on.
range_test <- function(ranges, n, df, apart) {
  if (is.null(ranges) || n < 2) return(c(NA, NA))
  kept <- ranges[!is.na(ranges)]
  u <- (1 + sum(kept >= round(abs(apart), 12))) / (length(kept) + 1)
  c(u, 2 * pt(qnorm(u / 2) * sqrt((n - 1) / n), df))
}
pairs <- read("comparisons*")
rownames(pairs) <- key(pairs$model_a, pairs$model_b, pairs$attribute)
families <- list()
for (a in c(intersect(measured, by_concept$attribute), "overall")) {
  if (a == "overall") {
    inside <- Reduce(intersect, lapply(families, `[[`, "inside"), unique(scores$model))
    ns <- vapply(families, `[[`, 0, "n")
    family <- list(n = min(ns, Inf), df = sum(ns - 1))
  } else {
    valued <- table(by_concept[by_concept$attribute == a, c("model", "concept")])
    inside <- rownames(valued)[rowSums(valued) == ncol(valued)]
    family <- list(n = ncol(valued), df = ncol(valued) - 1)
  }
  errors <- lapply(inside, function(m) every[[m]]$draws[[a]] - every[[m]]$d[[a]])
  if (length(inside) >= 2) family$ranges <- round(do.call(pmax, errors) - do.call(pmin, errors), 12)
  families[[a]] <- c(family, list(inside = inside))
}
whole <- Filter(function(f) !is.null(f$ranges) && f$n >= 2, families[names(families) != "overall"])
least <- min(vapply(whole, `[[`, 0, "n"), Inf)
for (i in seq_len(nrow(pairs))) {
  a <- pairs$attribute[i]
  family <- families[[a]]
  both <- every[c(pairs$model_a[i], pairs$model_b[i])]
  apart <- both[[2]]$d[[a]] - both[[1]]$d[[a]]
  one <- if (all(names(both) %in% family$inside)) range_test(family$ranges, family$n, family$df, apart) else c(NA, NA)
  all_of <- if (a == "overall" || is.na(one[1])) c(NA, NA) else range_test(do.call(pmax, lapply(whole, `[[`, "ranges")), least, least - 1, apart)
  found <- c(difference = 100 * apart, u_within = one[1], p_within = one[2], u_all = all_of[1], p_all = all_of[2])
  for (column in names(found)) compare(rownames(pairs)[i], column, found[[column]], pairs)
}

# Cochran's Q: each group's refusal rate against the mean of the groups, concept by concept.
tests <- read("refusal_tests*")
rownames(tests) <- key(tests$model, tests$attribute)
answered <- rows[rows$status %in% c("scored", "refused"), ]
for (i in seq_len(nrow(tests))) {
  own <- answered[answered$model == tests$model[i] & answered$attribute == tests$attribute[i], ]
  of_concept <- factor(own$concept)
  of_group <- factor(own$group, unique(rows$group[rows$attribute == tests$attribute[i]]))
  rates <- if (nrow(own)) tapply(own$status == "refused", list(of_concept, of_group), mean) else matrix(0, 0, tests$df[i] + 1)
  rates <- rates[rowSums(is.na(rates)) == 0, , drop = FALSE]
  apart <- rates - rowMeans(rates)
  differing <- sum(rowSums(round(abs(apart), 12) > 0) > 0)
  q <- if (differing) (ncol(rates) - 1) * sum(colSums(apart)^2) / sum(apart^2) else NA
  found <- c(q = q, p = if (differing >= 5) pchisq(q, ncol(rates) - 1, lower.tail = FALSE) else NA, n_concepts = nrow(rates), n_differing = differing)
  for (column in names(found)) compare(rownames(tests)[i], column, found[[column]], tests)
}

if (length(mismatches)) cat(mismatches, sep = "\n")
cat(checked, "numbers checked,", length(mismatches), "mismatches\n")
quit(status = if (length(mismatches) || checked == 0) 1 else 0)
