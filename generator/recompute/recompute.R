# Recompute the main scores of this folder from its receipts, with base R on the CSV files:  Rscript recompute.R [FOLDER]
args <- commandArgs(trailingOnly = TRUE)
folder <- if (length(args)) args[1] else "."
seven <- c("race_ethnicity", "gender", "age", "religion", "immigration_status", "political_affiliation", "disability")
controls <- c("control_profession", "control_tag")

# Base R has no fast CSV reader: name the columns that are used, the others are skipped while reading.
read <- function(pattern, wanted = NULL) {
  files <- Sys.glob(file.path(folder, paste0(pattern, ".csv")))
  do.call(rbind, lapply(files, function(path) {
    header <- strsplit(readLines(path, 1), ",")[[1]]
    classes <- if (is.null(wanted)) NA else ifelse(header %in% wanted, NA, "NULL")
    read.csv(path, colClasses = classes, na.strings = "", check.names = FALSE, encoding = "UTF-8")
  }))
}
key <- function(...) paste(..., sep = "|")
manifest <- paste(readLines(file.path(folder, "manifest.json"), warn = FALSE, encoding = "UTF-8"), collapse = "")
withheld <- regmatches(manifest, regexpr("\"withheld\": *\\[[^]]*\\]", manifest))
withheld <- regmatches(withheld, gregexpr("[a-z0-9_]+", withheld))[[1]][-1]

scores <- read("scores*")
scores <- scores[scores$model != "*", ]
published <- scores
rownames(published) <- key(scores$model, scores$metric, scores$attribute, ifelse(is.na(scores$group), "", scores$group))
checked <- 0
mismatches <- character(0)
compare <- function(name, column, here) {
  there <- as.numeric(published[name, column])
  checked <<- checked + 1
  same <- if (is.na(there) || is.na(here)) is.na(there) && is.na(here) && name %in% rownames(published) else abs(there - here) <= 1e-9
  if (!same) mismatches <<- c(mismatches, paste(name, column, "published", there, "recomputed", here))
}
# Estimate and interval of 100 (1 - D): type 7 quantiles of the replicates that have a value, rounded to 12 decimals.
compare_consistency <- function(name, disparity, draws) {
  a <- as.numeric(published[name, "ci_tail"])
  kept <- round(draws[!is.na(draws)], 12)
  q <- if (length(kept) && !is.na(a)) quantile(kept, c(a, 1 - a), type = 7, names = FALSE) else c(NA, NA)
  compare(name, "estimate", 100 * (1 - disparity))
  compare(name, "ci_low", 100 * (1 - q[2]))
  compare(name, "ci_high", 100 * (1 - q[1]))
}

# Cell means: the mean value of the scored repeats of a (concept, framing, group); two groups make a (concept, framing) count.
rows <- read("receipts/*", c("model", "attribute", "concept", "framing", "group", "category", "polarity", "two_sided", "status", "value"))
rows <- rows[rows$status == "scored" & rows$two_sided == "false" & !(rows$category %in% withheld), ]
cells <- aggregate(value ~ polarity + group + framing + concept + attribute + model, rows, mean)
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
  d["overall"] <- mean(d[seven])
  gap["overall"] <- mean(gap[seven])
  draws[["overall"]] <- if (is.na(d["overall"])) NA else Reduce(`+`, draws[seven]) / 7
  for (a in names(d)) {
    compare(key(model, "disparity", a, ""), "estimate", 100 * d[[a]])
    compare(key(model, "worst_gap", a, ""), "estimate", 100 * gap[[a]])
    compare_consistency(key(model, "consistency", a, ""), d[[a]], draws[[a]])
  }
  swapped <- isTRUE(round(d[controls[2]], 12) > round(d[controls[1]], 12)) # the control with the larger D is the lower edge
  edges <- if (swapped) rev(controls) else controls
  for (i in 1:2) {
    name <- key(model, c("band_low", "band_high")[i], "overall", "")
    if (anyNA(d[controls])) compare_consistency(name, NA, NA) else compare_consistency(name, d[[edges[i]]], draws[[edges[i]]])
  }
}

if (length(mismatches)) cat(mismatches, sep = "\n")
cat(checked, "numbers checked,", length(mismatches), "mismatches\n")
quit(status = if (length(mismatches) || checked == 0) 1 else 0)
