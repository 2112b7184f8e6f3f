"""Chromium without a screen: pages are opened, asked and measured. What they log and every request they make is kept."""

from __future__ import annotations

import contextlib
import json
import shutil
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

WAIT_SECONDS = 20
ARGUMENTS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars")


class Browser:
    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def visit(self, address: str, *, width: int = 1200, dark: bool = False) -> None:
        """Whatever is at that address, loaded."""
        self.driver.get_log("browser")
        self.driver.get_log("performance")
        screen = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        self.driver.get(address)

    def open(self, page: Path, *, width: int = 1200, dark: bool = False) -> None:
        """A page of ours, drawn."""
        self.visit(page.as_uri(), width=width, dark=dark)
        deadline = time.monotonic() + WAIT_SECONDS
        while not self.ask("return document.documentElement.dataset.drawn"):
            assert time.monotonic() < deadline, self.driver.get_log("browser")
            time.sleep(0.05)

    def ask(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def all(self, selector: str) -> list[Any]:
        return self.driver.find_elements("css selector", selector)

    def complaints(self) -> list[Any]:
        return self.driver.get_log("browser")

    def requests(self) -> list[str]:
        """Addresses asked for since the page was opened, the page itself left out."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        asked = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
        return [url for url in asked if not url.startswith(("file://", "data:", "blob:"))]


@contextlib.contextmanager
def headless() -> Generator[Browser, None, None]:
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    assert program and driver, "chromium and chromium-driver must be installed (.ci/run does it)"
    options = Options()
    options.binary_location = program
    for argument in ARGUMENTS:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options=options, service=Service(driver))
    try:
        yield Browser(started)
    finally:
        started.quit()
