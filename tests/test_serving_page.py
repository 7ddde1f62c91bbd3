"""The page with the tabs of its endpoints, and the description of the addresses."""

import re

import pytest
from serving_toys import EchoEndpoint, make_app, refusal, running

from paddle_dialog.errors import UserError


def test_the_description_is_a_page_without_scripts_or_foreign_addresses():
    with running(make_app(EchoEndpoint())) as client:
        api, page = client.get("/openapi.json").json(), client.get("/docs")
        assert client.get("/docs.css").headers["content-type"].startswith("text/css")
    assert set(api["paths"]) == {"/v1/echo", "/v1/models", "/healthz", "/readyz", "/metrics"}
    statuses = {"200", "400", "413", "415", "422", "503", "504"}
    assert set(api["paths"]["/v1/echo"]["post"]["responses"]) >= statuses
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    for part in ("POST /v1/echo", "A text to send back", "characters at most 50", "at least 0"):
        assert part in page.text
    assert not re.search(r"<script|<style|style=|https?://", page.text)


def tab(folder, **files):
    """Return a folder with a tab's files; `files` are laid over them by their stems."""
    folder.mkdir(exist_ok=True)
    names = {"tab": "tab.html", "script": "tab.js", "words": "words.js", "style": "tab.css"}
    for part, text in {"tab": "<p>标签</p>", "script": "1", "words": "2", "style": "a{}", **files}.items():
        if text is not None:
            (folder / names[part]).write_text(text, encoding="utf-8")
    return folder


def test_the_page_has_the_tabs_of_its_endpoints(tmp_path):
    endpoint = EchoEndpoint()
    with running(make_app(endpoint)) as client:
        bare = client.get("/").text
    endpoint.page = tab(tmp_path)
    with running(make_app(endpoint)) as client:
        page = client.get("/").text
        kinds = {
            path: client.get(path).headers["content-type"]
            for path in (
                "/",
                "/page/main.js",
                "/page/style.css",
                "/page/icon.svg",
                "/tasks/echo/tab.js",
                "/tasks/echo/tab.css",
            )
        }
        for path in ("/page/none.js", "/page/index.html", "/tasks/echo/none.js", "/tasks/other/tab.js"):
            refusal(client.get(path), 404)
        refusal(client.post("/page/main.js", json={}), 405)
    assert 'role="tab"' not in bare and "tasks/" not in bare
    assert '<link rel="stylesheet" href="tasks/echo/tab.css">' in page
    assert (
        '<section id="echo" role="tabpanel" aria-labelledby="tab-echo" tabindex="-1">\n<p>标签</p></section>'
        in page
    )
    assert list(kinds.values()) == [
        "text/html; charset=utf-8",
        "text/javascript; charset=utf-8",
        "text/css; charset=utf-8",
        "image/svg+xml",
        "text/javascript; charset=utf-8",
        "text/css; charset=utf-8",
    ]


def test_a_tab_that_lacks_a_file_is_told_at_the_start(tmp_path):
    endpoint = EchoEndpoint()
    endpoint.page = tab(tmp_path, words=None)
    with pytest.raises(
        UserError, match=r"a tab needs tab\.html, tab\.js, words\.js, and this has no words\.js"
    ):
        make_app(endpoint)
