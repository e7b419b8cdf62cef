"""`styleeyes catalog`: a feed in, a catalog out, and a look into it."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from edge_agent.cli.failure import EXIT_DONE, EXIT_FAILED, failures, leave, say, write_json_line
from edge_agent.cli.options import agent_option, home_option
from edge_agent.cli.progress import ProgressLine
from edge_agent.errors import StyleEyesError, UsageError
from edge_agent.files import write_atomically
from edge_agent.home import Home
from edge_agent.json_types import JsonValue
from edge_agent.session.first_start import choose_agent, prepare_home
from edge_agent.styleeyes.catalog.build import BuildReport, build_catalog
from edge_agent.styleeyes.catalog.feeds.importer import ImportReport, import_feed, state_date
from edge_agent.styleeyes.catalog.schema import open_catalog
from edge_agent.styleeyes.vision.weights import packaged_weights
from edge_agent.text import sanitise

CATALOG_TOOLS = ("search_catalog", "match_garment")
_PROBLEMS_SHOWN = 20
_AGENT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_FOLDER = click.Path(file_okay=False, path_type=Path)
_FILE = click.Path(path_type=Path)


def default_catalog(data: Path) -> Path:
    """Where an agent's tools look for the catalog of `data`."""
    return data / "databases" / "catalog.sqlite"


@click.group()
def catalog() -> None:
    """Build, import and search the product catalog.

    \b
    Examples:
      styleeyes catalog import feed.xml --agent shop --photos PHOTOS --build
      styleeyes catalog build DATA
      styleeyes catalog warm --agent shop
      styleeyes catalog search "dark green quilted jacket"
      styleeyes catalog stats DATA/databases/catalog.sqlite --excluded
    """


@catalog.command()
@click.argument("data", type=_FOLDER)
@click.argument("out", type=_FILE, required=False)
@click.option("--replace", is_flag=True, help="Put the new catalog in the place of an existing one.")
@click.option("--json", "as_json", is_flag=True, help="Write the result as one JSON object to stdout.")
def build(data: Path, out: Path | None, replace: bool, as_json: bool) -> None:
    """Build a catalog from the notes and photos in DATA.

    DATA holds products/*.md and photos/. OUT is DATA/databases/catalog.sqlite unless given; it is
    not overwritten, and nothing is left behind where the build fails.

    \b
    Examples:
      styleeyes catalog build ~/shop
      styleeyes catalog build ~/shop /tmp/catalog.sqlite --json
    """
    with failures(json_output=as_json):
        report = run_build(data, out or default_catalog(data), replace=replace)
        if as_json:
            write_json_line({"type": "result", "ok": True, **_build_fields(report)})


def run_build(data: Path, out: Path, *, replace: bool = False) -> BuildReport:
    """Builds with progress and a summary on stderr."""
    with ProgressLine() as line:
        report = build_catalog(data, out, line, replace=replace)
    say(f"{report.path}: {report.products:,} products, {report.photos:,} photos, {report.bytes / 1e6:.1f} MB")
    if report.excluded:
        reasons = ", ".join(f"{count} {reason}" for reason, count in report.excluded.items())
        say(f"left out {sum(report.excluded.values())} photos: {reasons}")
        say(f"  → styleeyes catalog stats {report.path} --excluded lists them")
    if report.snapshot_unknown:
        say(f"{report.snapshot_unknown:,} products have no snapshot date; it stays unknown")
    if report.photos and packaged_weights() is not None and out == default_catalog(data):
        say(f"  → styleeyes catalog warm {data} looks at the photos ahead, for quick answers offline")
    return report


def _build_fields(report: BuildReport) -> dict[str, Any]:
    return {
        "catalog": str(report.path),
        "products": report.products,
        "photos": report.photos,
        "excludedPhotos": report.excluded,
        "snapshot": {
            "first": report.snapshot_first,
            "last": report.snapshot_last,
            "unknown": report.snapshot_unknown,
        },
        "bytes": report.bytes,
    }


@catalog.command("import")
@click.argument("feed", type=_FILE)
@click.option("--to", "data", type=_FOLDER, help="The data folder that gets the notes.")
@click.option("--agent", "agent_id", metavar="ID", help="Or the agent that gets them; made where it is new.")
@home_option
@click.option(
    "--photos", type=_FOLDER, help="A folder in which the feed's photos lie under their base names."
)
@click.option(
    "--date", "stated", help="The day the feed was made (2026-09-14, or today), where it does not say."
)
@click.option(
    "--build", "then_build", is_flag=True, help="Build the catalog afterwards, renewing the old one."
)
@click.option("--json", "as_json", is_flag=True, help="Write the result as one JSON object to stdout.")
def import_(
    feed: Path,
    data: Path | None,
    agent_id: str | None,
    home: str | None,
    photos: Path | None,
    stated: str | None,
    then_build: bool,
    as_json: bool,
) -> None:
    """Turn a retailer's FEED into product notes.

    FEED is a Google Merchant feed (XML, Atom or TSV) or a Shopify products.json, gzipped or not.
    Sizes and colours of one style become one note. Importing again renews those notes; notes that
    were made or edited by hand are left alone. The date of the snapshot is the feed's own, or the
    one you state with --date; else it stays unknown.

    \b
    Examples:
      styleeyes catalog import merchant.xml --agent shop --photos ~/pictures --build
      styleeyes catalog import merchant.tsv.gz --to ~/shop --date 2026-09-14
    """
    with failures(json_output=as_json):
        data = _import_target(data, agent_id, home)
        date = state_date(stated, datetime.now(UTC).date().isoformat()) if stated else None
        with ProgressLine() as line:
            report = import_feed(feed, data, photos=photos, snapshot_date=date, on_progress=line)
        _say_import(report)
        agent = ensure_agent(data)
        if agent is not None:
            say(f"made the agent {agent!r} with the tools {' and '.join(CATALOG_TOOLS)}")
        built = run_build(data, default_catalog(data), replace=True) if then_build else None
        if not built:
            say(f"  → styleeyes catalog build {data} makes it searchable")
        if as_json:
            fields = {**_import_fields(report), **({"build": _build_fields(built)} if built else {})}
            write_json_line({"type": "result", "ok": not report.cut_short, **fields})
        if report.cut_short:
            leave(EXIT_FAILED)


def _import_target(data: Path | None, agent_id: str | None, home: str | None) -> Path:
    if (data is None) == (agent_id is None):
        raise UsageError(
            "INVALID_INPUT",
            "say where the notes go: either --to DATA or --agent ID",
            "for example --agent shop, which makes the agent 'shop' where it is new",
        )
    if data is not None:
        return data
    if not _AGENT_ID.fullmatch(agent_id or ""):
        raise UsageError(
            "INVALID_INPUT",
            f"{agent_id!r} is no name for an agent",
            "use letters, digits, hyphens and underscores, starting with a letter or digit",
        )
    return Home.find(home).agent(str(agent_id)).data


def _say_import(report: ImportReport) -> None:
    for problem in report.problems[:_PROBLEMS_SHOWN]:
        say(f"{report.feed}: {problem.severity}: {problem}")
    unseen = report.errors + report.warnings - min(len(report.problems), _PROBLEMS_SHOWN)
    if unseen:
        say(f"{report.feed}: and {unseen} more such lines (--json lists the first thousand)")
    say(
        f"{report.items:,} items of {report.feed} are {report.styles:,} styles: {report.created} made, "
        f"{report.updated} renewed, {report.unchanged} unchanged, {len(report.kept)} kept (made by hand)"
    )
    if report.photos_placed or report.photos_missing:
        say(f"{report.photos_placed} photos placed, {report.photos_missing} not found in the folder")
    if report.undated:
        say(f"{report.undated} styles have no snapshot date; --date states one")


def _import_fields(report: ImportReport) -> dict[str, Any]:
    return {
        "feed": report.feed,
        "format": report.kind,
        "items": report.items,
        "styles": report.styles,
        "created": report.created,
        "updated": report.updated,
        "unchanged": report.unchanged,
        "keptByHand": report.kept,
        "photosPlaced": report.photos_placed,
        "photosMissing": report.photos_missing,
        "undated": report.undated,
        "errors": report.errors,
        "warnings": report.warnings,
        "problems": [
            {"line": problem.line, "severity": problem.severity, "reason": problem.reason}
            for problem in report.problems
        ],
    }


def ensure_agent(data: Path) -> str | None:
    """Makes the `agent.json` of `HOME/agents/<id>/data` where it is missing; the id, if it did so."""
    folder = data.absolute().parent
    config = folder / "agent.json"
    if data.name != "data" or folder.parent.name != "agents" or config.exists():
        return None
    name = folder.name.replace("-", " ").replace("_", " ").strip().title() or folder.name
    settings = {"id": folder.name, "name": name, "tools": list(CATALOG_TOOLS)}
    write_atomically(config, (json.dumps(settings, ensure_ascii=False, indent=2) + "\n").encode())
    return folder.name


@catalog.command()
@click.argument("data", type=_FOLDER, required=False)
@home_option
@agent_option
@click.option("--json", "as_json", is_flag=True, help="Write the result as one JSON object to stdout.")
def warm(data: Path | None, home: str | None, agent: str | None, as_json: bool) -> None:
    """Look at all photos of a catalog ahead, so that the offline model answers at once.

    It takes some tenths of a second a photo, once: what was looked at is kept in HOME, and an
    interrupted run goes on where it was. Without it, sessions do the same in the background.

    \b
    Examples:
      styleeyes catalog warm
      styleeyes catalog warm --agent shop
      styleeyes catalog warm ~/shop
    """
    from edge_agent.cli.catalog_warm import warm_catalog

    with failures(json_output=as_json):
        found = Home.find(home)
        if data is None:
            prepare_home(found, say)
            data = choose_agent(found, agent).data
        report = warm_catalog(found, default_catalog(data), data / "photos")
        say(f"looked at {report.looked_at:,} of {report.photos:,} photos ({report.level} vision)")
        if report.reason:
            say(f"{report.reason} Colour alone is compared.")
        if as_json:
            counts = {"photos": report.photos, "lookedAt": report.looked_at, "vision": report.level}
            write_json_line({"type": "result", "ok": True, **counts})


@catalog.command()
@click.argument("query")
@click.option("--color", help="Only products in this colour or its family.")
@click.option("--category", help="Only this kind of garment.")
@click.option("--gender", help="Only for men, women, boys, girls or kids.")
@click.option("--has-photos", is_flag=True, help="Only products with catalog photos.")
@click.option("--limit", type=click.IntRange(1, 50), default=8, show_default=True)
@home_option
@agent_option
@click.option("--json", "as_json", is_flag=True, help="Write the tool's result as JSON to stdout.")
def search(
    query: str,
    color: str | None,
    category: str | None,
    gender: str | None,
    has_photos: bool,
    limit: int,
    home: str | None,
    agent: str | None,
    as_json: bool,
) -> None:
    """Search the agent's catalog, as the agent does: with its own search_catalog tool, in the sandbox.

    \b
    Examples:
      styleeyes catalog search "dark red short sleeve t-shirt"
      styleeyes catalog search POL-358 --json
      styleeyes catalog search hoodie --color navy --gender men
    """
    from edge_agent.cli import catalog_search
    from edge_agent.cli.interrupt import run_interruptibly

    with failures(json_output=as_json):
        found = Home.find(home)
        prepare_home(found, say)
        arguments: dict[str, JsonValue] = {"query": query, "limit": limit}
        arguments |= {
            name: value
            for name, value in (("color", color), ("category", category), ("gender", gender))
            if value
        }
        if has_photos:
            arguments["hasPhotos"] = True
        folder = choose_agent(found, agent)

        async def work() -> int:
            outcome = await catalog_search.search(found, folder, arguments)
            if outcome.error is not None:
                error = outcome.error
                raise StyleEyesError(error.code, error.message, error.hint)
            if as_json:
                write_json_line({"type": "result", "ok": True, "value": outcome.value})
            else:
                catalog_search.print_products(outcome.value)
            return EXIT_DONE

        leave(run_interruptibly(work()))


@catalog.command()
@click.argument("file", metavar="[CATALOG|DATA]", type=_FILE, required=False)
@home_option
@agent_option
@click.option("--excluded", is_flag=True, help="List each photo that was left out, with its reason.")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object to stdout.")
def stats(file: Path | None, home: str | None, agent: str | None, excluded: bool, as_json: bool) -> None:
    """Say what a catalog holds: the agent's own, or the one that you name.

    \b
    Examples:
      styleeyes catalog stats --agent shop
      styleeyes catalog stats ~/shop
      styleeyes catalog stats catalog.sqlite --excluded
    """
    with failures(json_output=as_json):
        if file is None:
            file = choose_agent(Home.find(home), agent).catalog
        found = catalog_stats(default_catalog(file) if file.is_dir() else file, excluded=excluded)
        if as_json:
            write_json_line({"type": "result", "ok": True, **found})
        else:
            _echo_stats(found)


def _echo_stats(found: dict[str, Any]) -> None:
    for key, value in found.items():
        if isinstance(value, dict):
            value = ", ".join(f"{name} {count}" for name, count in value.items()) or "none"
        if not isinstance(value, list):
            click.echo(sanitise(f"{key}: {'unknown' if value is None else value}"))
    for left_out in found.get("excluded", ()):
        click.echo(sanitise(f"{left_out['styleId']}\t{left_out['file']}\t{left_out['detail']}"))


def catalog_stats(path: Path, *, excluded: bool = False) -> dict[str, Any]:
    """Counts of a catalog; `excluded` adds every photo left out. Raises UsageError for no catalog."""
    connection = open_catalog(path)
    try:
        meta = dict(connection.execute("SELECT key, value FROM meta"))
        with_photos = connection.execute("SELECT count(*) FROM products WHERE photo_count > 0").fetchone()[0]
        families = connection.execute(
            "SELECT iif(family = '', 'other', family), count(DISTINCT product_id) FROM product_colors"
            " GROUP BY 1 ORDER BY 2 DESC, 1"
        )
        kinds = connection.execute(
            "SELECT kind, count(*) FROM product_kinds GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 20"
        )
        reasons = connection.execute("SELECT reason, count(*) FROM excluded_photos GROUP BY 1 ORDER BY 1")
        found: dict[str, Any] = {
            "catalog": str(path),
            "format": meta["format"],
            "products": meta["products"],
            "withPhotos": with_photos,
            "photos": meta["photos"],
            "leftOut": dict(reasons.fetchall()),
            "snapshotFirst": meta["snapshot_first"],
            "snapshotLast": meta["snapshot_last"],
            "snapshotUnknown": meta["snapshot_unknown"],
            "colors": dict(families.fetchall()),
            "kinds": dict(kinds.fetchall()),
        }
        if excluded:
            rows = connection.execute(
                "SELECT style_id, file, reason, detail FROM excluded_photos ORDER BY style_id, file"
            )
            found["excluded"] = [
                {"styleId": style, "file": file, "reason": reason, "detail": detail}
                for style, file, reason, detail in rows
            ]
        return found
    finally:
        connection.close()
