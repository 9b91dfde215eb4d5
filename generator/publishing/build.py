"""The building half of a publish: load, score, choose a mode, run the tasks, write the root, swap.

Reads what `plan.PublishPlan` names; writes one fresh tree. Tasks run in local processes or on a Dask cluster.

See contract: publication, "Publish".
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

from generator.data.folder import MANIFEST, SIGNATURE
from generator.data.receipts import PublishedReceipts, receipts_task
from generator.edition import paths
from generator.edition.comparison import Changes
from generator.edition.edition import Edition, Mode, read_site
from generator.edition.settings import own_pages
from generator.edition.site_pages import NOT_LISTED, page_at, site_pages, typical_pages
from generator.html.assets import asset_files
from generator.html.links import dead_links
from generator.machine.memory import give_back
from generator.machine.site_tree import Tree, fresh_tree
from generator.machine.workers import Pending, Workers, dask_workers, local_workers
from generator.pages.all import render_root, render_sitemaps, render_tombstone
from generator.pages.search import write_search
from generator.publishing.changes import changes_of
from generator.publishing.expected_size import run_sizes
from generator.publishing.fingerprints import Footprint, State, file_hash, footprint, sources_version, write_state
from generator.publishing.hosts import HOSTS, Size, check_space, faults
from generator.publishing.kept_parts import KeptParts
from generator.publishing.kept_scores import kept_scored
from generator.publishing.mode import chosen_mode
from generator.publishing.old_site import Published, front_run, read_published, recovered_folder
from generator.publishing.plan import Options, PublishOutcome, PublishPlan
from generator.publishing.provenance import kept_makings, render_publication
from generator.publishing.tasks import make_lists, make_pages, make_prose, make_receipts
from generator.receipts.pages import receipt_task
from generator.runs.reader import Each, Run, load_run, shard_keys
from generator.runs.redactions import read_redactions
from generator.schema.errors import InputError
from generator.schema.json_schemas import schema_files
from generator.scoring.gate import Standing, standing_of
from generator.scoring.run import Scored, score_run

Report = Callable[[str], None]
Expected = dict[str, dict[Mode, Size]]  # by run: what it would take in each mode
_ASSET = re.compile(rb"assets/[A-Za-z0-9._-]+")  # as a page names it
_IMPORTED = re.compile(rb' from "\./([A-Za-z0-9._-]+)";')  # as a module names another


def build(options: Options, plan: PublishPlan, state: State, report: Report, state_file: Path) -> PublishOutcome:
    """Build what the plan names, keep the rest, swap the tree in and remember what it was made from.

    Whoever calls this holds the lock of the output folder.
    """
    # The workers end before the tree is swapped in, or cleared away: none may still write below it.
    with fresh_tree(options.out) as root, ExitStack() as stack:
        local = stack.enter_context(local_workers(options.jobs, preload=make_prose.__module__))
        remote = stack.enter_context(dask_workers(options.dask)) if options.dask else local
        each = remote.each if options.dask or options.jobs > 1 else None
        editions, plan, expected = _editions(options, plan, state, report, each)
        give_back()
        kept = read_published(options.out, plan.keep)
        front = front_of(editions, kept, options, plan, state, each)
        tree = Tree(root, options.out)
        parts = _run_tasks(editions, front, tree, plan, state, local, remote, report)
        keep_runs(tree, plan, kept)
        write_root(tree, front, editions, kept, plan, options, state)
        after = footprint(root)
        _check_finished(root, after, options, kept, report)
    _remember(state_file, _state(after.digest, plan, state, editions, expected, front, parts), report)
    return PublishOutcome(
        built=[e.run_id for e in editions],
        kept=sorted(kept),
        removed=list(plan.removed),
        front=front.run_id,
        changed=True,
        files=after.files,
        largest=after.largest,
        bytes=after.bytes,
    )


def _editions(
    options: Options, plan: PublishPlan, state: State, report: Report, each: Each | None
) -> tuple[list[Edition], PublishPlan, Expected]:
    """Return the editions to build, all in one mode, the plan with every run that has to change its mode, and sizes."""

    def made(folders: Mapping[str, Path]) -> list[Edition]:
        return [edition_of(f, options, plan, report, state=state, each=each) for f in folders.values()]

    editions = made(plan.build)
    expected = {edition.run_id: run_sizes(edition) for edition in editions}
    choice = chosen_mode(options, plan, state, expected, report)
    if choice.stale:
        again = made({run: plan.unchanged[run] for run in choice.stale})
        expected |= {edition.run_id: run_sizes(edition) for edition in again}
        editions, plan = editions + again, plan.rebuilding(choice.stale)
    check_space(options.out.parent, sum((sizes[choice.mode] for sizes in expected.values()), Size(0, 0)))
    return [dataclasses.replace(edition, mode=choice.mode) for edition in editions], plan, expected


def _state(
    tree: str,
    plan: PublishPlan,
    before: State,
    editions: list[Edition],
    expected: Expected,
    front: Edition,
    parts: dict[str, str],
) -> State:
    """Return what the next publish has to know of this one."""
    known = before if plan.trusted else State()
    checked = {run: sorted(before.checked_by(plan.code, run)) for run in plan.keep}
    modes: dict[str, str] = {run: mode for run, mode in known.modes.items() if run in plan.keep}
    sizes = {run: found for run, found in known.sizes.items() if run in plan.keep}
    for edition in editions:
        checked[edition.run_id] = shard_keys(edition.run.manifest)
        modes[edition.run_id] = edition.mode
        sizes[edition.run_id] = {mode: [s.files, s.bytes] for mode, s in expected[edition.run_id].items()}
    return State(tree, plan.root, front.run_id, plan.keys, parts, plan.code, checked, modes, sizes)


def _remember(file: Path, state: State, report: Report) -> None:
    """Keep the state for the next publish; the site stands without it."""
    try:
        write_state(file, state)
    except OSError as error:
        report(f"{file}: what was built could not be noted ({error.strerror}); the next publish makes everything anew")


def edition_of(
    folder: Path,
    options: Options,
    plan: PublishPlan,
    report: Report,
    *,
    standing: Standing | None = None,
    state: State | None = None,
    each: Each | None = None,
) -> Edition:
    """Load and score one run and decide what it is published as.

    `standing` is given for a run published before; `each` checks and scores its shards elsewhere.
    """
    report(f"run {folder.name}: checking receipts")
    checked = state.checked_by(plan.code, folder.name) if state else frozenset()
    run = load_run(folder.resolve(), checked=checked, each=each)

    def score(withheld: frozenset[str]) -> Scored:
        def make() -> Scored:
            report(f"run {folder.name}: scoring {sum(s.rows for s in run.manifest.shards):,} rows")
            return score_run(run, withheld=withheld, each=each)

        return kept_scored(run, withheld, plan.code, options.cache_folder / "scores", make)

    scored = score(standing.withheld if standing else frozenset())
    if standing is None:
        standing = standing_of(run, scored, preview=options.preview, withhold=options.withhold)
        if standing.withheld:
            scored = score(standing.withheld)
    return Edition(
        site=read_site(options.content / "site.toml"),
        run=run,
        scored=scored,
        standing=standing,
        mode=options.mode or "row",
        base_url=options.base_url,
        superseded_by=plan.superseded.get(run.manifest.run_id),
        runs=frozenset((*plan.build, *plan.keep, *plan.removed)),
        chart_cache=options.cache_folder / "charts",
        redactions=read_redactions(options.content / "redactions.toml"),
    )


def front_of(
    editions: list[Edition],
    kept: Mapping[str, Published],
    options: Options,
    plan: PublishPlan,
    state: State,
    each: Each | None,
) -> Edition:
    """Return the run that the root shows: the one that site.toml names, or the newest live run, else a simulated one.

    See contract: publication, "Which run the root shows".
    """
    claims = {e.run_id: (e.run.manifest, e.standing) for e in editions}
    claims |= {run: (p.manifest, p.standing) for run, p in kept.items()}
    if not claims:
        raise InputError(f"{options.out}: nothing would be left; a site needs one run at least")
    named = read_site(options.content / "site.toml").front
    if named and named not in claims:
        there = ", ".join(sorted(claims))
        raise InputError(f"{options.content / 'site.toml'}: front: the site has no run {named!r}; its runs are {there}")
    chosen = front_run(claims, named)
    own = next((e for e in editions if e.run_id == chosen), None)
    if own is not None:
        return own
    # A kept run is shown from what it was made from, or from what it published, so that root and run pages agree.
    folder = plan.unchanged.get(chosen) or recovered_folder(options.out, chosen, options.cache_folder / "recovered")
    standing = kept[chosen].standing
    edition = edition_of(folder, options, plan, lambda _: None, standing=standing, state=state, each=each)
    making = kept_makings(options.out, [chosen]).get(chosen)
    return dataclasses.replace(edition, mode=making.mode) if making else edition


def _run_tasks(
    editions: list[Edition],
    front: Edition,
    tree: Tree,
    plan: PublishPlan,
    state: State,
    local: Workers,
    remote: Workers,
    report: Report,
) -> dict[str, str]:
    """Make all that changed of the runs to build, and the site's prose; returns the key of every part."""
    known = state.parts if plan.trusted else {}
    keys = {name: key for name, key in known.items() if name.partition(" ")[0] in plan.keep}
    all_parts = [KeptParts(edition, plan, state, tree) for edition in editions]
    # Receipts as files come first: the pages print the hash that pins them.
    files = [_receipt_files(parts, remote) for parts in all_parts]
    pending: list[tuple[str, Pending[object]]] = []
    for parts, receipts in zip(all_parts, files, strict=True):
        edition, run = parts.edition, f"run {parts.edition.run_id}"
        published = [wait() for wait in receipts]
        pending.append((f"{run}: tables, charts and pages", local.submit(make_pages, edition, tree, published)))
        pending.append((f"{run}: lists and explorer", local.submit(make_lists, edition, tree, parts.lists())))
        for model in edition.run.models:
            task = receipt_task(edition, model, tree.root)
            if parts.receipts_stand(task, model):
                parts.keep_receipts(model)
            else:
                pending.append((f"{run}: receipts of {model}", remote.submit(make_receipts, task)))
        keys |= parts.keys
    pending.append(("methodology", local.submit(make_prose, front, tree)))
    for what, task_result in pending:
        task_result.result()
        report(f"{what}: done")
    return keys


def _receipt_files(parts: KeptParts, workers: Workers) -> list[Callable[[], PublishedReceipts]]:
    folder = parts.tree.root / paths.data_file(parts.edition.run_id, "")
    tasks = (receipts_task(parts.edition, model, folder) for model in parts.edition.run.models)
    return [parts.files(task, workers) for task in tasks]


def keep_runs(tree: Tree, plan: PublishPlan, kept: Mapping[str, Published]) -> None:
    """Link the runs that stay, with every asset that their pages name."""
    named: set[str] = set()
    for run in kept:
        tree.keep(f"runs/{run}")
    # Pages that are made in bulk all name the same assets: one of each template stands for all.
    for page in typical_pages(site_pages(tree.old) if kept else ()):
        if page.run in kept:
            named |= {found.decode() for found in _ASSET.findall((tree.old / page.path).read_bytes())}
    _keep_assets(tree, named)
    for run in plan.removed:
        if tree.has_kept(f"runs/{run}") and not (tree.old / "runs" / run / "data").exists():
            tree.keep(f"runs/{run}")


def _keep_assets(tree: Tree, named: set[str]) -> None:
    """Take assets over from the old tree, with the modules that they import: an old page goes on loading old ones."""
    seen: set[str] = set()
    while waiting := sorted(named - seen):
        seen.update(waiting)
        for name in waiting:
            if (tree.old / name).is_file():
                data = (tree.old / name).read_bytes()
                tree.write(name, data)
                named = named | {f"assets/{found.decode()}" for found in _IMPORTED.findall(data)}


def write_root(
    tree: Tree,
    front: Edition,
    editions: list[Edition],
    kept: Mapping[str, Published],
    plan: PublishPlan,
    options: Options,
    state: State,
) -> None:
    """Write the pages of the site's root but its prose, assets, tombstones, search index and sitemaps."""
    cards = [found.card(plan.superseded.get(run)) for run, found in sorted(kept.items())]
    # The feed prints the hash that pins a publication; the data folders are written by now.
    editions = [dataclasses.replace(e, manifest_sha256=_pin(tree.root, e.run_id)) for e in editions]
    for edition in editions:
        _sign(tree, edition.run_id, options)
    changes = _changes(tree, front, editions, plan, options, state)
    root = render_root(front, editions, kept=cards, removed=plan.removed, changes=changes)
    pages = [*root, *asset_files(front.site), *schema_files()]
    for page, data in pages:
        tree.write(page, data)
    for run in plan.removed:
        tree.write(paths.run_index(run), render_tombstone(front.site, run, options.base_url))
    sources = sources_version(options.content)
    tree.write(*render_publication(front, editions, kept_makings(tree.old, plan.keep), sources))
    write_search(tree.root)
    tree.settle("pagefind")
    if options.base_url:
        dates = {e.run_id: e.run.manifest.date for e in editions if e.indexable}
        dates |= {c.run_id: c.date for c in cards if c.indexable}
        for page, data in render_sitemaps(options.base_url, indexable_pages(tree.root, front, dates, changes)):
            tree.write(page, data)


def _changes(
    tree: Tree, front: Edition, editions: list[Edition], plan: PublishPlan, options: Options, state: State
) -> Changes:
    """Hold the runs of the new site against each other; a kept one is read only where a table is not known."""
    loaded = {edition.run_id: edition.run for edition in (*editions, front)}

    def run_of(run: str) -> Run:
        if run not in loaded:
            folder = plan.unchanged.get(run) or recovered_folder(options.out, run, options.cache_folder / "recovered")
            loaded[run] = load_run(folder.resolve(), checked=state.checked_by(plan.code, run))
        return loaded[run]

    published = read_published(tree.root, {*plan.keep, *(edition.run_id for edition in editions)})
    kept = (options.cache_folder / "changes", plan.code)
    return changes_of(tree.root, published, run_of, front.redactions, kept)


def _sign(tree: Tree, run_id: str, options: Options) -> None:
    if options.sign is not None:
        manifest = (tree.root / paths.data_file(run_id, MANIFEST)).read_bytes()
        tree.write(paths.data_file(run_id, SIGNATURE), options.sign.sign(manifest))


def _pin(root: Path, run_id: str) -> str:
    return file_hash(root / paths.data_file(run_id, "manifest.json"))


def indexable_pages(
    root: Path, front: Edition, dates: Mapping[str, str], changes: Changes
) -> Iterator[tuple[str, str]]:
    """Yield (page, date) of every page that search engines may list: of live runs, and of the root in front of one.

    A page of change is listed where both of its runs are, at the date of the newer one.
    """
    own = own_pages(front.site.pages)
    changed = {paths.change_page(c.new.run_id, c.old.run_id): c.new.date for c in changes.comparisons if c.indexable}
    for page in site_pages(root) if dates or front.indexable else ():
        date = dates.get(page.run) if page.run else front.run.manifest.date if front.indexable else None
        if page.kind == "change":
            date = changed.get(page.path)
        if date is not None and (page.kind not in NOT_LISTED or page.path in own):
            yield page.path, date


def _check_finished(root: Path, found: Footprint, options: Options, kept: Container[str], report: Report) -> None:
    """Hold the finished tree against the host's limits, and its links; the old site stays where they do not hold.

    A page of a kept run was made by another publish: a link of it that has died meanwhile is told and stops nothing.
    """
    lines = [
        f"--host {options.host}: {f}"
        for f in faults(HOSTS[options.host], Size(found.files, found.bytes), found.largest)
    ]
    for link in dead_links(root, (page.path for page in typical_pages(site_pages(root))), options.base_url):
        if page_at(link.page).run in kept:
            report(f"kept as it stands, though a link leads nowhere: {link}")
        else:
            lines.append(f"a link leads nowhere: {link}")
    if lines:
        raise InputError(*lines, "the old site was left as it is")
