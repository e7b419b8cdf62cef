"""`styleeyes catalog`, as a person types it: exit statuses, stdout and stderr."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from edge_agent.styleeyes.catalog.schema import open_catalog
from tests.styleeyes.catalog.shop import Shop, note

ROOT = Path(__file__).resolve().parents[3]
FEED = "id\titem_group_id\ttitle\tcolor\tprice\nA1-R\tA1\tAlpha Coat Red\tRed\t5 USD\n"


def run(
    *arguments: str | Path, program: str = "-m", home: Path | None = None
) -> subprocess.CompletedProcess[str]:
    first = [program, "edge_agent", "catalog"] if program == "-m" else [program]
    environment = {**os.environ, "STYLEEYES_HOME": str(home)} if home else dict(os.environ)
    return subprocess.run(
        [sys.executable, *first, *map(str, arguments)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def stocked(shop: Shop) -> Shop:
    shop.add(note("MH01", "Chaz Hoodie", photos=("mh01.jpg", "wp03.jpg"), snapshot_date="2026-09-14"))
    shop.add(note("WP03", "Ida Pant"))
    return shop


@pytest.mark.parametrize("program", ["-m", "scripts/build_styleeyes_catalog.py"])
def test_build_and_the_script_are_one(stocked: Shop, tmp_path: Path, program: str) -> None:
    arguments = [stocked.data, tmp_path / "out.sqlite"]
    done = run(*(["build", *arguments] if program == "-m" else arguments), program=program)
    assert (done.returncode, done.stdout) == (0, "")
    assert "2 products, 1 photos" in done.stderr
    assert "left out 1 photos: 1 other-style" in done.stderr
    open_catalog(tmp_path / "out.sqlite").close()
    again = run(*(["build", *arguments] if program == "-m" else arguments), program=program)
    assert again.returncode == 2
    assert "exists and is not overwritten" in again.stderr


def test_build_as_json(stocked: Shop) -> None:
    done = run("build", stocked.data, "--json")
    result = json.loads(done.stdout)
    assert (result["type"], result["ok"], result["products"]) == ("result", True, 2)
    assert result["excludedPhotos"] == {"other-style": 1}
    failed = run("build", stocked.data, "--json")
    assert failed.returncode == 2
    assert json.loads(failed.stdout)["error"]["code"] == "ALREADY_EXISTS"


def test_stats_lists_what_was_left_out(stocked: Shop) -> None:
    stocked.build()
    done = run("stats", stocked.data, "--excluded")
    assert "MH01\twp03.jpg\tits file name names style WP03" in done.stdout.splitlines()
    found = json.loads(run("stats", stocked.catalog, "--json").stdout)
    assert (found["products"], found["leftOut"]) == (2, {"other-style": 1})


def test_stats_of_something_else(tmp_path: Path) -> None:
    done = run("stats", tmp_path / "none.sqlite")
    assert done.returncode == 2
    assert "Build one: styleeyes catalog build DATA" in done.stderr


def test_import_makes_the_agent_and_builds(tmp_path: Path) -> None:
    feed = tmp_path / "feed.tsv"
    feed.write_text(FEED)
    data = tmp_path / "home" / "agents" / "corner-shop" / "data"
    done = run("import", feed, "--to", data, "--date", "2026-09-14", "--build")
    assert done.returncode == 0, done.stderr
    assert "made the agent 'corner-shop' with the tools search_catalog and match_garment" in done.stderr
    config = json.loads((data.parent / "agent.json").read_text())
    assert config == {
        "id": "corner-shop",
        "name": "Corner Shop",
        "tools": ["search_catalog", "match_garment"],
    }
    again = run("import", feed, "--to", data, "--date", "2026-09-14", "--build", "--json")
    result = json.loads(again.stdout)
    assert (result["unchanged"], result["build"]["snapshot"]["last"]) == (1, "2026-09-14")
    assert "made the agent" not in again.stderr


def test_existing_agent_is_left_as_it_is(tmp_path: Path) -> None:
    feed = tmp_path / "feed.tsv"
    feed.write_text(FEED)
    data = tmp_path / "home" / "agents" / "mine" / "data"
    data.mkdir(parents=True)
    (data.parent / "agent.json").write_text("{}")
    assert run("import", feed, "--to", data).returncode == 0
    assert (data.parent / "agent.json").read_text() == "{}"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere.xml", "--to", "data"], "cannot be opened"),
        (["pyproject.toml", "--to", "data"], "is no feed that StyleEyes can read"),
        (["feed.tsv", "--to", "data", "--date", "soon"], "'soon' is not a date"),
        (["feed.tsv", "--to", "data", "--photos", "nowhere"], "There is no folder"),
    ],
)
def test_wrong_usage_is_status_2(tmp_path: Path, arguments: list[str], words: str) -> None:
    (tmp_path / "feed.tsv").write_text(FEED)
    paths = [
        str(tmp_path / a) if a in ("feed.tsv", "data", "nowhere", "nowhere.xml") else a for a in arguments
    ]
    done = run("import", *paths)
    assert done.returncode == 2
    assert words in done.stderr
    assert not (tmp_path / "data").exists()


def test_feed_cut_short_is_status_1_after_all_that_could_be_read(tmp_path: Path) -> None:
    feed = tmp_path / "feed.xml"
    feed.write_text("<rss><channel><item><id>A1</id><title>Coat</title></item><item><id>A2")
    done = run("import", feed, "--to", tmp_path / "data", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["ok"] is False
    assert (tmp_path / "data" / "products" / "A1.md").exists()


def test_search_is_the_agents_own_tool(stocked: Shop) -> None:
    stocked.build()
    home = stocked.data.parents[2]
    (stocked.data.parent / "agent.json").write_text(
        json.dumps({"id": "shop", "name": "Shop", "tools": ["search_catalog"]})
    )
    done = run("search", "hoody", "--json", "--agent", "shop", home=home)
    if done.returncode == 3:
        pytest.skip(done.stderr)
    result = json.loads(done.stdout)
    assert [product["styleId"] for product in result["value"]["products"]] == ["MH01"]
    shown = run("search", "red pants", "--color", "red", "--agent", "shop", home=home)
    assert shown.stdout.splitlines()[0] == "WP03 Ida Pant (red; 0 photos)"
    assert shown.stdout.splitlines()[1] == "    found by name: pants, color: red"


@pytest.mark.parametrize("command", ["", "build", "import", "search", "stats"])
def test_help_has_examples(command: str) -> None:
    done = run(*filter(None, [command]), "--help")
    assert done.returncode == 0
    assert "styleeyes catalog" in done.stdout
    assert "Examples:" in done.stdout
