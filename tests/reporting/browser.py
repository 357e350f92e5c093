"""A real Chromium without a window, driven by Playwright: what it shows, says, asks for and lets a
reader do.

Playwright lives in a thread of its own, because it keeps an event loop running, beside which no
test of the same process could start another. One program serves all tests of a process; each
`Browser` is a profile of its own.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import pytest

T = TypeVar("T")

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-extensions",
    "--hide-scrollbars",
)
PATIENCE = 30
GRAVE = ("serious", "critical")
"""What axe calls a fault that keeps someone from reading the page."""

_WATCH = """
addEventListener("securitypolicyviolation", (event) => {
  const list = (window.stoppedByPolicy = window.stoppedByPolicy || []);
  list.push(event.effectiveDirective + " " + event.blockedURI);
}, true);
"""
_AXE = (
    "axe.run(document, {resultTypes: ['violations']}).then(found => found.violations.map(one => "
    "({id: one.id, "
    "impact: one.impact, help: one.help, "
    "where: one.nodes.map(node => node.target.join(' ') + ' ' + node.html.slice(0, 200))})))"
)


def program() -> str:
    """Return the browser's program; skip the test where there is none."""
    executable = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if executable is None:
        pytest.skip("needs Chromium, which is not installed")
    return executable


class Chromium:
    """The program and the thread it is driven from; as a context manager, so that nothing of it
    stays behind.
    """

    def __enter__(self) -> Chromium:
        name = program()
        playwright = pytest.importorskip(
            "playwright.sync_api", reason="needs Playwright, which is not installed"
        )
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="playwright")
        self._open = ExitStack()

        def start() -> Any:
            driver = self._open.enter_context(playwright.sync_playwright())
            # Signals are the test runner's business: a browser that answers them itself is gone
            # before its tests are.
            quiet = {"handle_sigint": False, "handle_sigterm": False, "handle_sighup": False}
            return driver.chromium.launch(executable_path=name, args=list(OPTIONS), **quiet)

        try:
            self.program = self.do(start)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        try:
            self.do(self.program.close)
        finally:
            self._end()

    def _end(self) -> None:
        self._thread.submit(self._open.close)
        self._thread.shutdown()

    def do(self, work: Callable[[], T]) -> T:
        return self._thread.submit(work).result()


class Browser:
    """One page at a time, in a fresh profile of a program that is running already."""

    def __init__(self, *, chromium: Chromium) -> None:
        self._chromium = chromium
        self._profile: Any = None
        self._fresh(scripts=True, policy=True)

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._chromium.do(self._profile.close)

    def _forget(self) -> None:
        self._errors: list[str] = []
        self._requests: list[Any] = []

    def _fresh(self, *, scripts: bool, policy: bool) -> None:
        def make() -> None:
            if self._profile is not None:
                self._profile.close()
            self._profile = self._chromium.program.new_context(
                java_script_enabled=scripts, bypass_csp=not policy
            )
            self._profile.set_default_timeout(1000 * PATIENCE)
            self._profile.add_init_script(_WATCH)
            self._profile.on("request", lambda request: self._requests.append(request))
            self._profile.on("console", self._hear)
            self._profile.on("weberror", lambda error: self._errors.append(str(error.error)))
            self._page = self._profile.new_page()
            self._wire = self._profile.new_cdp_session(self._page)

        self._forget()
        self._chromium.do(make)
        self._profile_options = {"scripts": scripts, "policy": policy}

    def _hear(self, message: Any) -> None:
        if message.type in ("error", "warning", "assert"):
            self._errors.append(message.text)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return dict(self._chromium.do(lambda: self._wire.send(method, parameters)))

    def do(self, work: Callable[[Any], T]) -> T:
        return self._chromium.do(lambda: work(self._page))

    def open(
        self,
        path: Path | str,
        *,
        width: int = 1280,
        height: int = 900,
        dark: bool = False,
        scripts: bool = True,
        policy: bool = True,
    ) -> None:
        """Open a file or an address in a window of this size, and wait until its figures are drawn.

        Without `policy` the page's own policy is not kept, which only `axe` needs.
        """
        profile_options = {"scripts": scripts, "policy": policy}
        if profile_options != self._profile_options:
            self._fresh(**profile_options)
        self.size(width, height)
        self.do(lambda page: page.emulate_media(color_scheme="dark" if dark else "light"))
        self._forget()
        address = path if isinstance(path, str) else path.as_uri()
        self.do(lambda page: page.goto(address, wait_until="load"))
        if scripts:
            self.until(
                "!document.querySelector('[data-figure]') || document.documentElement.dataset.drawn"
            )

    def size(self, width: int, height: int = 900) -> None:
        self.do(lambda page: page.set_viewport_size({"width": width, "height": height}))

    def run(self, code: str) -> Any:
        answer = self.call(
            "Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def until(self, condition: str) -> None:
        end = time.monotonic() + PATIENCE
        while not self.run(f"Boolean({condition})"):
            assert time.monotonic() < end, f"never came true: {condition}"
            time.sleep(0.02)

    def click(self, selector: str) -> None:
        """Click in the middle of the first such element, once it is there, at rest, and not
        covered.
        """
        self.do(lambda page: page.locator(selector).first.click())

    def fill(self, selector: str, text: str) -> None:
        self.do(lambda page: page.locator(selector).first.fill(text))

    def choose(self, selector: str, value: str) -> None:
        """Choose an entry of a list by its value or its label."""
        self.do(lambda page: page.locator(selector).first.select_option(value))

    def press(self, key: str) -> None:
        self.do(lambda page: page.keyboard.press(key))

    def type(self, text: str) -> None:
        self.do(lambda page: page.keyboard.type(text))

    def point(self, x: float, y: float) -> None:
        self.do(lambda page: page.mouse.move(x, y))

    def axe(self, *impacts: str) -> list[str]:
        """What axe-core finds at fault, a line each: of these impacts, by default the serious and
        critical ones.
        """
        assert not self._profile_options["policy"], (
            "open the page with policy=False first: its own policy lets no other script in"
        )
        module = pytest.importorskip(
            "axe_playwright_python.base", reason="needs axe, which is not installed"
        )
        if not self.run("'axe' in window"):
            self.run(module.AXE_SCRIPT + "; null")
        counted_impacts = impacts or GRAVE
        violations = [
            violation for violation in self.run(_AXE) if violation["impact"] in counted_impacts
        ]
        return [
            f"{violation['impact']} {violation['id']} ({violation['help']}): {where}"
            for violation in violations
            for where in violation["where"]
        ]

    @property
    def overflow(self) -> int:
        """By how many pixels the page is wider than its window; 0 where it fits."""
        return int(self.run("Math.max(0, document.scrollingElement.scrollWidth - innerWidth)"))

    @property
    def complaints(self) -> list[str]:
        """Every error and warning of the page and its scripts so far."""
        self._settle()
        return list(self._errors)

    @property
    def requests(self) -> list[str]:
        """Every address asked for so far, but for those that the page's own policy stopped."""
        self._settle()
        return self._chromium.do(
            lambda: [request.url for request in self._requests if request.failure != "csp"]
        )

    @property
    def stopped(self) -> list[str]:
        """What the page's policy stopped, as directive and address."""
        return list(self.run("window.stoppedByPolicy || []"))

    def _settle(self) -> None:
        """Hear what was said while nobody listened: Playwright takes messages in only while it is
        asked something.
        """
        self.run("0")
