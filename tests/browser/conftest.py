"""A real Chromium against the real web server on the test database.

`site` is the server, `page` a signed-in tab. Whatever the console of a tab says as an error, an uncaught exception
and a violation of the CSP fail the test. Playwright's own event loop runs in this thread while its browser is open,
so the browser lives as long as one module: tests elsewhere run loops of their own.
"""

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import quote

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, sync_playwright

from console.access import Who
from console.data import CHECKOUT
from console.embedded.children import start_bound
from console.listening import address_of, bind
from console.models import User
from tests.factories import make_person

CHROMIUM = "/usr/bin/chromium"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DESK: ViewportSize = {"width": 1280, "height": 900}
PHONE: ViewportSize = {"width": 375, "height": 812}
START = 30.0  # seconds for what takes one on an idle machine
# Said by Chromium of every refusal; the page shows it in its own words.
REFUSALS = "Failed to load resource: the server responded with a status of 4"


@pytest.fixture(scope="module")
def site(django_db_setup: None) -> Iterator[str]:
    """The address of a web server on the test database, without a slash at its end."""
    listening = bind("127.0.0.1", 0)
    address = address_of(listening).rstrip("/")
    server = start_bound(
        [sys.executable, "-m", "console.server", "--fd", str(listening.fileno())],
        pass_fds=(listening.fileno(),),
        stdout=subprocess.PIPE,
        cwd=CHECKOUT,
        env=os.environ
        | {
            "DATABASE_URL": _test_database(),
            "REDIS_URL": settings.REDIS_URL,
            "SECRET_KEY": settings.SECRET_KEY,
            "CONSOLE_MODEL": "fake-large",  # so that runs begin; tests that let them run are the worker
        },
    )
    try:
        _wait_until_alive(address, server)
        yield address
    finally:
        server.terminate()
        server.communicate(timeout=START)
        listening.close()


def _test_database() -> str:
    told = connection.settings_dict
    host = quote(str(told["HOST"]), safe="")
    return f"postgresql://{told['USER']}@{host}:{told['PORT'] or 5432}/{told['NAME']}"


def _wait_until_alive(address: str, server: subprocess.Popen[bytes]) -> None:
    """The socket listens already, so the first request waits in it until the server has come up."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + START
    while server.poll() is None and time.monotonic() < deadline:
        try:
            opener.open(f"{address}/healthz", timeout=START).close()
        except urllib.error.URLError:
            continue
        return
    server.kill()
    told, _ = server.communicate()
    pytest.fail(f"The web server did not come up: {told.decode()}")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One Chromium for a module."""
    before = os.environ.get("DJANGO_ALLOW_ASYNC_UNSAFE")
    with sync_playwright() as playwright:
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"  # queries of tests see Playwright's loop in their thread
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        try:
            yield opened
        finally:
            opened.close()
            if before is None:
                del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@dataclass
class Tabs:
    """Opens tabs, each in a browser profile of its own, and keeps what their consoles say."""

    browser: Browser
    site: str
    expected: list[str] = field(default_factory=lambda: [REFUSALS])  # how faults begin that a test asks for
    faults: list[str] = field(default_factory=list)
    contexts: list[BrowserContext] = field(default_factory=list)

    def open(self, who: Who | None = None, *, viewport: ViewportSize = DESK, scheme: str = "light") -> Page:
        """A fresh tab, at the board where `who` is signed in. What a sign-in takes is tested apart."""
        context = self.browser.new_context(
            base_url=self.site, viewport=viewport, color_scheme="dark" if scheme == "dark" else "light"
        )
        context.set_default_timeout(10_000)
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        self.contexts.append(context)
        page = context.new_page()
        page.on("console", lambda said: self._heard(said.type, said.text))
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        if who is not None:
            context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": _session_of(who), "url": self.site}])
            page.goto("/")
        return page

    def _heard(self, kind: str, text: str) -> None:
        if kind == "error" and not text.startswith(tuple(self.expected)):
            self.faults.append(text)


def _session_of(who: Who) -> str:
    client = Client()
    client.force_login(User.objects.get(actor=who.actor))
    return str(client.cookies[settings.SESSION_COOKIE_NAME].value)


@pytest.fixture
def tabs(transactional_db: None, browser: Browser, site: str) -> Iterator[Tabs]:
    """Tabs of one test. A fault in any of them fails it."""
    tabs = Tabs(browser=browser, site=site)
    yield tabs
    for context in tabs.contexts:
        context.close()
    assert tabs.faults == []


@pytest.fixture
def mira(tabs: Tabs) -> Who:
    """The reader of most tests."""
    return make_person("mira")


@pytest.fixture
def page(tabs: Tabs, mira: Who) -> Page:
    """A wide, light tab of mira's."""
    return tabs.open(mira)


def contrast_faults(page: Page) -> list[str]:
    """Texts with less contrast than WCAG AA asks for, once they have faded in: 4.5, and 3 where the text is large."""
    found: list[str] = page.evaluate(CONTRAST)
    return found


CONTRAST = r"""() => {
  for (const one of document.getAnimations()) if (one.effect.getComputedTiming().endTime !== Infinity) one.finish()
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true })
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1)
    canvas.fillStyle = colour
    canvas.fillRect(0, 0, 1, 1)
    return [...canvas.getImageData(0, 0, 1, 1).data].map((v, i) => (i === 3 ? v / 255 : v))
  }
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1)
  const ground = (e) => {
    const layers = []
    for (let at = e; at; at = at.parentElement) layers.push(rgba(getComputedStyle(at).backgroundColor))
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1])
  }
  const light = (c) => {
    const [r, g, b] = c.map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4))
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
  }
  const faults = []
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const e = node.parentElement
    if (!node.data.trim() || !e.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue
    if (e.closest(".vh, .skip, [disabled], [aria-hidden=true], option, svg, script, style")) continue
    const style = getComputedStyle(e)
    const behind = ground(e)
    let opacity = 1
    for (let at = e; at; at = at.parentElement) opacity *= Number(getComputedStyle(at).opacity)
    const ink = rgba(style.color)
    const [a, b] = [light(over([ink[0], ink[1], ink[2], ink[3] * opacity], behind)), light(behind)].sort((x, y) => y - x)
    const ratio = (a + 0.05) / (b + 0.05)
    const size = parseFloat(style.fontSize)
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700)
    if (ratio < (large ? 3 : 4.5)) faults.push(`${ratio.toFixed(2)} "${node.data.trim().slice(0, 40)}" .${e.className}`)
  }
  return [...new Set(faults)]
}"""
