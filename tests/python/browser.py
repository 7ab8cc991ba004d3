"""Opens pages in headless Chromium, for tests of them."""

import contextlib
import shutil

import pytest

_CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


@contextlib.contextmanager
def _page(**size):
    """An empty playwright page. Skips the test if there is no playwright or no browser."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if _CHROMIUM is None:
        pytest.skip("there is no Chromium here")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_CHROMIUM, args=["--no-sandbox"])
        yield browser.new_page(viewport={"width": 1200, "height": 900} | size)
        browser.close()


@contextlib.contextmanager
def opened(path, **size):
    """A playwright page with this file in it, `size` its width and height. When the block ends, the
    page must have asked for nothing outside of the file and raised no error. Skips the test if there
    is no playwright or no browser."""
    requests, errors = [], []
    with _page(**size) as page:
        page.on("request", lambda request: requests.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(path.resolve().as_uri())
        yield page
    outside = [url for url in requests if not url.startswith(("file:", "data:", "blob:"))]
    assert not outside, f"asked for {outside}"
    assert not errors, errors


@contextlib.contextmanager
def visited(address, base):
    """A playwright page of a server at `base`, which is all that it can reach. Skips as `opened`."""
    inside = (base, "data:", "blob:")
    with _page() as page:
        page.route(
            "**/*",
            lambda r: r.continue_() if r.request.url.startswith(inside) else r.abort(),
        )
        page.goto(address)
        yield page
