"""What a run's data set is said to be wherever it is described for machines and catalogs: description and keywords."""

from __future__ import annotations

from generator.edition.banners import mark_of
from generator.edition.edition import Edition
from generator.edition.numbers import plural
from generator.scoring.reasons import in_words


def description(edition: Edition) -> str:
    """Return one paragraph: first what the data set is, then its mark, what is left out and what speaks against it."""
    manifest = edition.run.manifest
    answers = plural(sum(shard.rows for shard in manifest.shards), "answer")
    models = plural(len(manifest.models), "simulated model" if manifest.simulated else "language model")
    text = (
        f"{answers} of {models} to prompts that come in matched sets, alike but for one group term, "
        f"each asked {times(edition)}; the votes of a panel of judges that did not see the group; and the scores "
        f"computed from them. Run {manifest.run_id} of {manifest.date}, prompt bank {manifest.bank_version} "
        f"(SHA-256 {manifest.bank_sha256})."
    )
    return " ".join((text, *_marks(edition)))


def times(edition: Edition) -> str:
    """Return how often each prompt was asked; some less often in a run that lacks rows."""
    repeats = edition.run.manifest.repeats
    if repeats == 1:
        return "once"
    return f"{'up to ' if any(edition.run.absent.values()) else ''}{repeats} times"


def _marks(edition: Edition) -> list[str]:
    standing, found = edition.standing, []
    if edition.simulated:
        found.append(
            "Simulated: no real model was asked; answers and votes come from programs with planted biases and say "
            "nothing about any real model."
        )
    if standing.state == "preview":
        found.append("Preview, not a result: these scores may not be published yet.")
    if standing.withheld:
        found.append(f"Left out of every score: {', '.join(sorted(standing.withheld))}.")
    if standing.reasons:
        found.append(f"What speaks against it: {'; '.join(map(in_words, standing.reasons))}.")
    return found


def keywords(edition: Edition) -> list[str]:
    """Return the keywords of the data set; the last is its mark, where it has one."""
    words = ["large language models", "bias", "counterfactual evaluation", "benchmark", "consistency"]
    mark = mark_of(edition)
    return [*words, mark] if mark else words
