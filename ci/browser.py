"""Chromium without a display, driven through a pipe by the DevTools protocol; and a connection that can be cut."""

import base64
import json
import os
import queue
import shutil
import socket
import subprocess
import tempfile
import threading
import time


class Browser:
    """One process of Chromium, which ends with this one."""

    def __init__(self, chromium):
        self.folder = tempfile.mkdtemp(prefix="grebe-page.")
        to_browser, self.to = os.pipe()
        self.back, from_browser = os.pipe()
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe"]
        command = [chromium, *flags, f"--user-data-dir={self.folder}", "--no-first-run", "about:blank"]
        # The pipe is descriptors 3 and 4 of the browser.
        script = 'exec "$@" 3<&"$GREBE_IN" 4>&"$GREBE_OUT"'
        env = {**os.environ, "GREBE_IN": str(to_browser), "GREBE_OUT": str(from_browser)}
        self.process = subprocess.Popen(
            ["bash", "-c", script, "bash", *command],
            pass_fds=(to_browser, from_browser), env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self.number, self.answers, self.events = 0, {}, []
        self.wake = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        rest = b""
        while chunk := os.read(self.back, 1 << 16):
            *messages, rest = (rest + chunk).split(b"\0")
            with self.wake:
                for message in map(json.loads, messages):
                    if "id" in message:
                        self.answers[message["id"]] = message
                    else:
                        self.events.append(message)
                self.wake.notify_all()

    def send(self, method, params=None, session=None):
        with self.wake:
            self.number += 1
            number = self.number
        message = {"id": number, "method": method, "params": params or {}}
        if session:
            message["sessionId"] = session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        with self.wake:
            if not self.wake.wait_for(lambda: number in self.answers, timeout=60):
                raise SystemExit(f"FAILED  the browser does not answer {method}")
            answer = self.answers.pop(number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def page(self, width, height, theme="dark", is_phone=False):
        target = self.send("Target.createTarget", {"url": "about:blank"})["targetId"]
        session = self.send("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        page = Page(self, target, session)
        for domain in ("Runtime", "Log", "Page", "Network"):
            page.send(f"{domain}.enable")
        page.resize(width, height, theme, is_phone)
        return page

    def close(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Page:
    """A tab."""

    def __init__(self, browser, target, session):
        self.browser, self.target, self.session = browser, target, session

    def send(self, method, params=None):
        return self.browser.send(method, params, self.session)

    def resize(self, width, height, theme, is_phone):
        ratio = 2 if is_phone else 1
        self.send("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": ratio, "mobile": is_phone})
        self.send("Emulation.setTouchEmulationEnabled", {"enabled": is_phone})
        self.send("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": theme}]})

    def go(self, url):
        self.send("Page.navigate", {"url": url})

    def run(self, script):
        """The value of an expression; `root` is the scope's root element."""
        wrapped = f'(async () => {{ const root = document.getElementById("scope")?.shadowRoot; return ({script}); }})()'
        answer = self.send("Runtime.evaluate", {"expression": wrapped, "awaitPromise": True, "returnByValue": True})
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise RuntimeError(f"{script}: {details.get('exception', {}).get('description', details['text'])}")
        return answer["result"].get("value")

    def wait(self, script, what, limit_s=60):
        """Waits until an expression holds; returns its value."""
        end = time.monotonic() + limit_s
        while True:
            try:
                if value := self.run(script):
                    return value
            except RuntimeError:
                pass  # The page may still be loading.
            if time.monotonic() > end:
                shown = self.run('root?.querySelector(".grebe")?.innerText.slice(0, 600)')
                raise SystemExit(f"FAILED  {what}: never {script}; the page shows:\n{shown}")
            time.sleep(0.05)

    def press(self, key):
        text = {"text": key} if len(key) == 1 else {}
        self.send("Input.dispatchKeyEvent", {"type": "keyDown", "key": key, **text})
        self.send("Input.dispatchKeyEvent", {"type": "keyUp", "key": key})

    def click(self, name):
        found = self.run(f"""(() => {{ const named = [...root.querySelectorAll("button")].filter((it) => it.getClientRects().length > 0);
            const it = named.find((it) => it.textContent === {json.dumps(name)} || it.ariaLabel === {json.dumps(name)}); it?.click(); return !!it; }})()""")
        if not found:
            raise SystemExit(f"FAILED  no button {name!r}")

    def mouse(self, kind, x, y, **more):
        self.send("Input.dispatchMouseEvent", {"type": kind, "x": x, "y": y, **more})

    def drag(self, start, end, modifiers=0):
        self.mouse("mousePressed", *start, button="left", buttons=1, clickCount=1, modifiers=modifiers)
        for step in range(1, 6):
            at = [a + (b - a) * step / 5 for a, b in zip(start, end)]
            self.mouse("mouseMoved", *at, button="left", buttons=1, modifiers=modifiers)
        self.mouse("mouseReleased", *end, button="left", clickCount=1, modifiers=modifiers)

    def touch(self, kind, points):
        self.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y, "id": at} for at, (x, y) in enumerate(points)]})

    def screenshot(self, path):
        shot = self.send("Page.captureScreenshot", {"format": "png"})
        path.write_bytes(base64.b64decode(shot["data"]))

    def complaints(self):
        """Errors in the console, and requests to other servers."""
        with self.browser.wake:
            events = [event for event in self.browser.events if event.get("sessionId") == self.session]
        said = []
        for event in events:
            params = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                details = params["exceptionDetails"]
                said.append(details.get("exception", {}).get("description", details["text"]))
            elif event["method"] == "Log.entryAdded" and params["entry"]["level"] == "error":
                said.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")
        return said

    def requests(self):
        with self.browser.wake:
            events = [event for event in self.browser.events if event.get("sessionId") == self.session]
        return [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]

    def close(self):
        self.browser.send("Target.closeTarget", {"targetId": self.target})


class Way:
    """Forwards a port to another with a delay. A cut resets its connections and refuses new ones."""

    def __init__(self, port, delay_s=0.0):
        self.to, self.delay_s, self.is_cut, self.pairs = port, delay_s, False, []
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            near, _ = self.server.accept()
            if self.is_cut:
                near.close()
                continue
            far = socket.create_connection(("127.0.0.1", self.to))
            self.pairs.append((near, far))
            for a, b in ((near, far), (far, near)):
                threading.Thread(target=self._carry, args=(a, b), daemon=True).start()

    def _carry(self, source, to):
        waiting = queue.Queue()
        threading.Thread(target=self._send, args=(waiting, source, to), daemon=True).start()
        try:
            while data := source.recv(1 << 16):
                waiting.put((time.monotonic() + self.delay_s, data))
        except OSError:
            pass
        waiting.put((0, b""))

    @staticmethod
    def _send(waiting, source, to):
        try:
            while (due := waiting.get())[1]:
                time.sleep(max(due[0] - time.monotonic(), 0))
                to.sendall(due[1])
        except OSError:
            pass
        for end in (source, to):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self):
        self.is_cut = True
        for pair in self.pairs:
            for end in pair:
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
        self.pairs = []

    def mend(self):
        self.is_cut = False
