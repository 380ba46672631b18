"""Chromium, driven by the W3C WebDriver protocol over ChromeDriver: JSON over HTTP, so no package is needed."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
CHROMEDRIVER = shutil.which("chromedriver")

#: Nothing that a browser does of its own accord: what it asks for is what the page asks for.
FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-extensions", "--hide-scrollbars"),
    *("--force-color-profile=srgb", "--lang=en-US"),
)
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class Browser:
    """One window of Chromium."""

    def __init__(self, folder: Path, width: int = 1400, height: int = 900) -> None:
        assert CHROMIUM
        assert CHROMEDRIVER
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._root = f"http://127.0.0.1:{port}"
        with (folder / "chromedriver.log").open("wb") as log:
            self._process = subprocess.Popen([CHROMEDRIVER, f"--port={port}"], stdout=log, stderr=subprocess.STDOUT)
        profile = folder / "profile"
        options = {
            "binary": CHROMIUM,
            "args": [*FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}"],
        }
        wanted = {
            "browserName": "chrome",
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        try:
            self._wait_until_up()
            made = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        except BaseException:
            self._process.kill()
            raise
        self._session = f"/session/{made['sessionId']}"
        # A new window has a page of the browser's own, which asks for a lot.
        self._ask("POST", f"{self._session}/url", {"url": "about:blank"})
        self.requests()

    def close(self) -> None:
        """End the window, the driver and all that they started."""
        try:
            self._ask("DELETE", self._session)
        finally:
            self._process.terminate()
            self._process.wait(20)

    def open(self, address: str) -> None:
        """Load a page and wait until its scripts are done."""
        self._ask("POST", f"{self._session}/url", {"url": address})
        self.wait("document.documentElement.dataset.ready === 'true'")

    def run(self, script: str, *arguments: Any) -> Any:
        """The value that a function body returns."""
        return self._ask("POST", f"{self._session}/execute/sync", {"script": script, "args": list(arguments)})

    def wait(self, condition: str, seconds: float = 20) -> None:
        """Wait until an expression is true."""
        until = time.monotonic() + seconds
        while not self.run(f"return Boolean({condition})"):
            assert time.monotonic() < until, f"never true: {condition}"
            time.sleep(0.05)

    def click(self, selector: str) -> None:
        """Click on the first element that a selector finds, as a user does: where it is seen."""
        self.run("document.querySelector(arguments[0]).scrollIntoView({block: 'center'})", selector)
        element = self._ask("POST", f"{self._session}/element", {"using": "css selector", "value": selector})
        self._ask("POST", f"{self._session}/element/{element[_ELEMENT]}/click", {})

    def press(self, *keys: str) -> None:
        """Type keys into whatever has the focus."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._act([{"type": "key", "id": "keyboard", "actions": actions}])

    def drag(self, start: tuple[float, float], end: tuple[float, float], shift: bool = False) -> None:
        """Drag from one point of the window to another."""

        def to(point: tuple[float, float], duration: int = 0) -> dict[str, Any]:
            return {"type": "pointerMove", "duration": duration, "x": round(point[0]), "y": round(point[1])}

        middle = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
        mouse: list[dict[str, Any]] = [
            to(start),
            {"type": "pointerDown", "button": 0},
            to(middle, 50),
            to(end, 50),
            {"type": "pointerUp", "button": 0},
        ]
        if not shift:
            return self._act([{"type": "pointer", "id": "mouse", "actions": mouse}])
        held = [
            {"type": "keyDown", "value": "\ue008"},
            *({"type": "pause"} for _ in mouse),
            {"type": "keyUp", "value": "\ue008"},
        ]
        return self._act(
            [
                {"type": "key", "id": "keyboard", "actions": held},
                {"type": "pointer", "id": "mouse", "actions": [{"type": "pause"}, *mouse, {"type": "pause"}]},
            ]
        )

    def resize(self, width: int, height: int) -> None:
        self._ask("POST", f"{self._session}/window/rect", {"width": width, "height": height})

    def emulate(self, **features: str) -> None:
        """Have media features, such as ``prefers_color_scheme="dark"``."""
        listed = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self._devtools("Emulation.setEmulatedMedia", {"features": listed})

    def print_media(self, width: int | None) -> None:
        """Show the page as on paper of a width in pixels; None: on the screen again."""
        self._devtools("Emulation.setEmulatedMedia", {"media": "print" if width else ""})
        if width is None:
            self._devtools("Emulation.clearDeviceMetricsOverride", {})
        else:
            size = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
            self._devtools("Emulation.setDeviceMetricsOverride", size)

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self._ask("GET", f"{self._session}/screenshot")))

    def whole_page(self, path: Path) -> None:
        """A picture of the page, as long as it is."""
        taken = self._devtools("Page.captureScreenshot", {"captureBeyondViewport": True, "format": "png"})
        path.write_bytes(base64.b64decode(taken["data"]))

    def printed(self) -> bytes:
        """The page as PDF."""
        return base64.b64decode(self._ask("POST", f"{self._session}/print", {}))

    def complaints(self) -> list[str]:
        """Warnings and errors on the console since last asked: scripts that failed, what the policy refused."""
        entries = self._ask("POST", f"{self._session}/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] in ("WARNING", "SEVERE")]

    def requests(self) -> list[str]:
        """Addresses that anything asked for since last asked."""
        entries = self._ask("POST", f"{self._session}/se/log", {"type": "performance"})
        messages = [json.loads(entry["message"])["message"] for entry in entries]
        sent = [message for message in messages if message["method"] == "Network.requestWillBeSent"]
        return [message["params"]["request"]["url"] for message in sent]

    def _act(self, sources: list[dict[str, Any]]) -> None:
        self._ask("POST", f"{self._session}/actions", {"actions": sources})
        self._ask("DELETE", f"{self._session}/actions")

    def _devtools(self, name: str, parameters: dict[str, Any]) -> Any:
        return self._ask("POST", f"{self._session}/goog/cdp/execute", {"cmd": name, "params": parameters})

    def _wait_until_up(self) -> None:
        until = time.monotonic() + 20
        while True:
            try:
                if self._ask("GET", "/status")["ready"]:
                    return
            except OSError:
                pass
            assert time.monotonic() < until, "ChromeDriver did not start"
            time.sleep(0.05)

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._root + path, data, {"Content-Type": "application/json"}, method=method)
        # Never by a proxy: it is this machine.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=90) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.read().decode()[:2000]}") from None
