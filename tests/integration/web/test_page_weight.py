"""Pages are light: what goes over the wire, how much there is to draw, and that files are kept by browsers."""

from __future__ import annotations

import hashlib
import json
import re

from control_plane.lookups.organizations import system_caller
from control_plane.web.assets import FOREVER, STATIC, asset
from tests.support.filled import fill
from tests.support.fleet import Api

KILOBYTE = 1000
MOST_SCRIPT_LINES, MOST_STYLE_BYTES = 1200, 44 * KILOBYTE
"""The aims are 1,000 lines and 40 kB."""
COMMENT = re.compile(r"\s*(//|/\*\*|\*|$)")


def test_a_page_is_small_over_the_wire(api: Api) -> None:
    fill(api, system_caller(api.core), "mark")
    with api.browser() as browser:
        page = browser.get("/orders")
    assert page.headers["content-encoding"] == "gzip"
    assert int(page.headers["content-length"]) < 100 * KILOBYTE


def test_static_files_are_kept_by_browsers_and_have_other_addresses_once_they_change(api: Api) -> None:
    with api.http(None) as browser:
        own = browser.get(asset("css/base.css"))
        earlier = browser.get("/static/000000000000/css/base.css")
        none = browser.get(asset("css/none.css"))
    assert (own.status_code, own.headers["cache-control"]) == (200, FOREVER)
    assert (earlier.text, "immutable" in earlier.headers.get("cache-control", "")) == (own.text, False)
    assert none.status_code == 404


def test_every_vendored_file_is_the_one_that_the_list_names() -> None:
    listed = json.loads((STATIC / "vendor" / "parts.json").read_text())["files"]
    hashes = {each["file"]: each["sha256"] for each in listed}
    present = {each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in (STATIC / "vendor").glob("*.js")}
    assert hashes == present


def test_every_icon_that_a_template_names_is_in_the_sprite() -> None:
    sprite = set(re.findall(r'<symbol id="([^"]+)"', (STATIC / "icons.svg").read_text()))
    named = {
        name
        for each in (STATIC.parent / "templates").rglob("*.html")
        for name in re.findall(r"icon\(\"([a-z0-9-]+)\"", each.read_text())
    }
    assert (len(named) > 5, named - sprite) == (True, set())


def test_scripts_and_styles_stay_small() -> None:
    texts = [line for each in (STATIC / "js").glob("*.js") for line in each.read_text().splitlines()]
    lines = sum(not COMMENT.match(line) for line in texts)
    size = sum(each.stat().st_size for each in (STATIC / "css").glob("*.css"))
    assert (lines <= MOST_SCRIPT_LINES, size <= MOST_STYLE_BYTES) == (True, True), (lines, size)
