"""Drives the page of `grebe serve` in Chromium: its content, keys, mouse, touch, and a lost connection.

    ci/page.sh target/release/grebe

Counts, order and content are checked, never speed; how long the first picture took is printed.
"""

import fcntl
import json
import math
import os
import pty
import random
import re
import select
import struct
import subprocess
import sys
import termios
import time
from array import array
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from browser import Browser, Way

KEPT = Path("target/ci")
SOURCE = "synth:sine,square?channels=2&frequency=1k&rate=200k"
checks = 0


def check(what, is_good):
    global checks
    if not is_good:
        raise SystemExit(f"FAILED  {what}")
    checks += 1
    print(f"ok      {what}", flush=True)


class Server:
    """`grebe serve`, and the link that it prints."""

    def __init__(self, grebe, *options, link=1, sources=(SOURCE,)):
        self.process = subprocess.Popen(
            [grebe, "serve", *sources, "--listen", "127.0.0.1:0", *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.said = []
        for line in self.process.stdout:
            self.said.append(line)
            if found := re.search(r"(http://127\.0\.0\.1:(\d+)/)#token=(\S+)", line):
                link -= 1
                if link > 0:
                    continue
                self.link, self.base, self.port, self.token = found[0], found[1], int(found[2]), found[3]
                Thread(target=self.process.stdout.read, daemon=True).start()
                return
        raise SystemExit(f"FAILED  grebe serve prints no link: {''.join(self.said)}")

    def close(self):
        self.process.kill()
        self.process.wait()


FACTS = '[...root.querySelectorAll(".facts .item")].map((it) => it.textContent.trim()).join(", ")'
STATE = 'root.querySelector(".state").textContent'
DIVISION = 'root.querySelector(".division").textContent'
NOTICE = 'root.querySelector(".notice").textContent'
# Upward crossings of the middle by the first lane's trace, as it was drawn: pixels of its colour, column by column.
CYCLES = """(() => {
  const canvas = root.querySelector(".plot canvas");
  const { data, width, height } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const middles = [];
  for (let x = 0; x < width - 20; x += 1) {
    let [sum, count] = [0, 0];
    for (let y = 0; y < height; y += 1) {
      const at = 4 * (y * width + x);
      if (data[at] > 195 && Math.abs(data[at + 1] - 0.873 * data[at]) < 16 && data[at + 2] < 110) { sum += y; count += 1; }
    }
    if (count > 0) middles.push(sum / count);
  }
  const [top, bottom] = [Math.min(...middles), Math.max(...middles)];
  const [high, low] = [top + (bottom - top) * 0.4, top + (bottom - top) * 0.6];
  let [crossings, isLow] = [0, false];
  for (const y of middles) {
    if (y > low) isLow = true;
    else if (y < high && isLow) { crossings += 1; isLow = false; }
  }
  return middles.length > 100 ? crossings : -1;
})()"""
WATERFALL = """(() => { const canvas = root.querySelector(".pane.waterfall canvas"), g = canvas.getContext("2d");
    return new Set(new Uint32Array(g.getImageData(80, 14, 600, 60).data.buffer)).size > 20; })()"""
PANE = 'root.querySelector(".pane.waterfall canvas")'
SHIFT = 8
PICTURE = 'root.querySelector(".plot canvas").toDataURL()'


def first_picture(browser, server):
    page = browser.page(1920, 1080)
    began = time.monotonic()
    page.go(server.link + "&span=0.01")
    page.wait(f'{STATE} === "LIVE" && {CYCLES} >= 0', "the first picture")
    print(f"        the first picture was seen after {time.monotonic() - began:.1f} s")
    check("it is live, and the trace is drawn", True)
    check("the token is not in the address any more", page.run('!location.href.includes("token")'))
    foreign = [url for url in page.requests() if not url.startswith((server.base, server.base.replace("http", "ws")))]
    check(f"it asks nobody else {foreign or ''}", not foreign)
    frames = page.run("""new Promise((done) => { let [count, began] = [0, performance.now()];
        const next = () => (performance.now() - began < 3000 ? (count += 1, requestAnimationFrame(next)) : done(count / 3));
        requestAnimationFrame(next); })""")
    print(f"        it draws {frames:.0f} times a second; {page.run(FACTS)}")
    bytes_ = page.run('performance.getEntriesByType("resource").reduce((sum, it) => sum + it.encodedBodySize, 0)')
    print(f"        {bytes_ / 1000:.0f} kB in {page.run('performance.getEntriesByType(`resource`).length')} files")
    check("the page is at most 300 kB", 0 < bytes_ <= 300_000)
    return page


def moves(page):
    before = page.run(PICTURE)
    page.wait(f"{PICTURE} !== {json.dumps(before)}", "another picture")
    return True


def zoom_and_pan(page):
    page.click("auto")
    page.wait(f'{DIVISION} !== ""', "a time span")
    for _ in range(30):
        if page.run(DIVISION) == "500 µs/div":
            break
        before = page.run(DIVISION)
        page.press("ArrowRight" if page.run(f"parseFloat({DIVISION}) < 500 && {DIVISION}.includes('µs') || {DIVISION}.includes('ns')") else "ArrowLeft")
        page.wait(f"{DIVISION} !== {json.dumps(before)}", "another time span")
    page.wait(f'{DIVISION} === "500 µs/div" && Math.abs({CYCLES} - 5) <= 1', "5 ms of 1 kHz")
    check("5 ms show five cycles of 1 kHz", True)
    page.press("+")
    page.wait(f'{DIVISION} === "200 µs/div" && Math.abs({CYCLES} - 2) <= 1', "2 ms of 1 kHz")
    check("+ shows two", True)
    page.mouse("mouseWheel", 900, 300, deltaX=0, deltaY=120)
    page.wait(f'{DIVISION} === "500 µs/div" && Math.abs({CYCLES} - 5) <= 1', "the wheel")
    check("the wheel goes back to five", True)


def trigger(page):
    page.click("normal")
    page.wait('root.querySelector(".trigger-state").textContent === "TRIGGERED"', "normal triggers")
    level = 'root.querySelector(".trigger button[title^=level]").textContent'
    at_zero = page.run(level)
    # The level's mark stands at the right edge of its lane: drag it to the top, above the signal.
    box = page.run('root.querySelector(".plot").getBoundingClientRect().toJSON()')
    right = box["right"] - 14
    middle = page.run("""(() => { const canvas = root.querySelector(".plot canvas"), g = canvas.getContext("2d");
        const { data } = g.getImageData(canvas.width - 9, 0, 1, canvas.height);
        const ys = [...Array(canvas.height).keys()].filter((y) => data[4 * y] > 200 && data[4 * y + 2] < 110);
        return canvas.getBoundingClientRect().top + ys.reduce((sum, y) => sum + y, 0) / ys.length; })()""")
    page.drag((right, middle), (right, box["top"] + 14))
    page.wait('root.querySelector(".trigger-state").textContent === "READY"', "a level above the signal")
    check("a level that was dragged above the signal waits for it", page.run(level) != at_zero)
    page.press("0")
    page.wait('root.querySelector(".trigger-state").textContent === "TRIGGERED"', "the level in the middle")
    check("0 puts it into the middle of the signal, which triggers", True)
    page.click("roll")


def pause_and_scroll(page):
    check("the picture moves", moves(page))
    page.press(" ")
    page.wait(f'{STATE} === "PAUSED"', "pause")
    page.wait('root.querySelector(".exact").textContent === "exact"', "an exact picture")
    held = page.run(PICTURE)
    time.sleep(0.5)
    check("space holds it, exactly", page.run(PICTURE) == held)
    before = page.run(NOTICE)
    page.drag((700, 400), (1100, 400))
    page.wait(f"{NOTICE} !== {json.dumps(before)} && {NOTICE}.startsWith('right edge at')", "a drag")
    page.wait(f'root.querySelector(".exact").textContent === "exact" && {PICTURE} !== {json.dumps(held)}', "the past")
    check("a drag shows what was before", True)
    check("the button says so, too", page.run('root.querySelector(".pause[aria-pressed=true]").textContent') == "go on")
    page.screenshot(KEPT / "page-paused.png")
    page.press("End")
    page.wait(f'{STATE} === "LIVE" && !root.querySelector("[data-held]")', "live again")
    check("end goes on with the newest", moves(page))


def triggers(page):
    page.click("normal")
    page.press("g")
    list_ = 'aside[aria-label="last triggers"] .entry'
    places = f"root.querySelectorAll('{list_}').length"
    page.wait(f"{places} > 10", "the last triggers")
    page.run(f"root.querySelectorAll('{list_}')[5].click()")
    shown = f"root.querySelector('{list_}[aria-pressed=true]')?.textContent"
    page.wait(f'{STATE} === "PAUSED" && {shown}', "the sixth trigger")
    # Ages count from the newest of the list, which is another around another trigger: the stream's own time does not.
    # Until the picture of a trigger is there, the notice is that of the picture before.
    edge = f"root.querySelector('.exact').textContent === 'exact' && {NOTICE}.startsWith('right edge at') && {NOTICE}"
    at = page.wait(edge, "its place")
    page.press("{")
    before = page.wait(f"{NOTICE} !== {json.dumps(at)} && {edge}", "the trigger before")
    check(f"{at} is behind {before}", 0 < seconds(at.split("at ")[1]) - seconds(before.split("at ")[1]) < 0.0011)
    page.press("}")
    page.wait(f"{NOTICE} === {json.dumps(at)}", "the trigger behind")
    page.wait(f'root.querySelector(".exact").textContent === "exact" && {CYCLES} > 0', "its picture")
    check(f"a trigger of {page.run(places)} is gone to, and from it to the next", True)
    page.screenshot(KEPT / "page-triggers.png")
    page.press("g")
    page.press("End")
    page.click("roll")
    page.wait(f'{STATE} === "LIVE"', "live again")


FOUND = "root.querySelector('aside[aria-label=find] .status')?.textContent"
TYPED = 'root.querySelector("#answer")'


def open_find(page):
    page.press('"')
    page.wait(f"root.activeElement === {TYPED}", "a line to type what is to be found")


def look_for(page, words):
    """Types a search. Returns the final message."""
    page.run(f"{TYPED}.value = {json.dumps(words)}, {TYPED}.form.requestSubmit()")
    button = f"root.querySelector('aside[aria-label=find] .wide')?.textContent === {json.dumps(words)}"
    return page.wait(f"{button} && /(searched|not searched: )/.test({FOUND}) && !{FOUND}.includes(' % ') && {FOUND}", f"the end of a search for {words}")


def find(page):
    open_find(page)
    check(f"it offers what triggers: {page.run(TYPED + '.value')}", page.run(f"/^edge --channels 1 --level \\S+/.test({TYPED}.value)"))
    said = look_for(page, "edge --level 0 --channels 2")
    check(f"it is searched: {said}", re.match(r"\d{2,} found.*: searched (everything|the last )", said))
    shown = "root.querySelector('aside[aria-label=find] .entry[aria-pressed=true]')?.textContent"
    page.press("}")
    first = page.wait(f"{STATE} === 'PAUSED' && {shown}", "the first that was found")
    page.press("}")
    second = page.wait(f"{shown} !== {json.dumps(first)} && {shown}", "the second")
    check(f"{said.split(':')[0]}, and }} goes from one to the next", 0 < seconds(second) - seconds(first) < 0.0011)
    page.wait('root.querySelector(".exact").textContent === "exact"', "its picture")
    page.screenshot(KEPT / "page-find.png")
    open_find(page)
    check("an invalid expression gets an error", "edge, pulse" in look_for(page, "glitch"))
    page.press("Escape")
    page.press("End")
    page.wait(f'{STATE} === "LIVE" && !root.querySelector("aside[aria-label=find]")', "live again")


def seconds(words):
    number, unit = words.split()[:2]
    return float(number) * {"s": 1, "ms": 1e-3, "µs": 1e-6}[unit]


def numbers(page):
    for button in ("measure", "spectrum", "waterfall", "cursors", "channels"):
        page.click(button)
    cell = """[...root.querySelectorAll("table[aria-label=measurements] tbody tr")].map((row) =>
        row.cells[[...root.querySelectorAll("table[aria-label=measurements] thead th")].findIndex((it) => it.textContent === "frequency")]?.textContent)"""
    page.wait(f'{cell}[0] === "1 kHz"', "the frequency of CH1")
    check("the table says 1 kHz", True)
    check("it has a row a channel", len(page.run(cell)) == 2)
    page.wait(WATERFALL, "a waterfall")
    peak = """(() => { const canvas = root.querySelector(".pane.spectrum canvas"), g = canvas.getContext("2d");
        return new Set(new Uint32Array(g.getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size > 20; })()"""
    page.wait(peak, "a spectrum")
    # A transform is shorter until the pane's words arrive for the whole one.
    page.wait('root.querySelector(".pane.spectrum .dim").textContent.startsWith("8192 samples")', "the length of the transform")
    check("spectrum and waterfall are drawn", True)
    box(page)
    check("cursors have a table", page.run('root.querySelectorAll("table[aria-label=cursors] tbody tr").length') >= 3)
    shown = "root.querySelectorAll('.names .name').length"
    page.press("2")
    page.wait(f"{shown} === 1", "one lane")
    page.press("9")
    page.wait(f"{shown} === 2", "both lanes")
    check("2 takes a channel away, 9 brings all", True)


def draw_box(page, start, end):
    """Draws a box between two places of the waterfall, as parts of its pane."""
    area = page.run(f"(({{ left, top, width, height }}) => ({{ left, top, width, height }}))({PANE}.getBoundingClientRect())")
    place = lambda at: (area["left"] + at[0] * area["width"], area["top"] + at[1] * area["height"])
    page.drag(place(start), place(end), modifiers=SHIFT)


def box(page):
    draw_box(page, (0.2, 0.3), (0.4, 0.7))
    cells = "[...root.querySelectorAll('table[aria-label=box] tbody td')].map((it) => it.textContent)"
    command = page.wait(f"{cells}.at(-1)", "the numbers of a box")
    low, high = (float(number[:-1]) for number in command.split(",")[2:])
    # A fifth of the pane, which is a tenth wider than its 100 kHz.
    check(f"shift draws a box: {command}", command.startswith("grebe convert RECORDING box.sigmf-meta --box ") and 20 < high - low < 24)
    page.click("no box")
    page.wait(f"{cells}.length === 0", "no box")


def accessible(page):
    tree = page.send("Accessibility.getFullAXTree")["nodes"]
    seen = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in tree if not node.get("ignored")]
    controls = [name for role, name in seen if role in ("button", "combobox", "checkbox", "slider", "image", "MenuListPopup")]
    nameless = [role for role, name in seen if role in ("button", "combobox", "checkbox", "slider", "image") and not name.strip()]
    check(f"{len(controls)} buttons, menus and pictures have a name {nameless or ''}", len(controls) > 25 and not nameless)
    roles = {role for role, _ in seen}
    check("there are real tables, headings and a status", {"table", "columnheader", "rowheader", "status", "heading"} <= roles)


def links(browser, page, server):
    page.click("link")
    link = 'root.querySelector("dialog input[type=text]").value'
    plain = page.wait(link, "a link")
    check("a link holds the view and no token", "span_s=" in plain and "show.spectrum=true" in plain and server.token not in plain)
    page.run('root.querySelector("#with-token").click()')
    whole = page.wait(f"{link}.includes('token=') && {link}", "a link with the token")
    page.press("Escape")
    page.run('root.querySelectorAll("dialog[open]").forEach((it) => it.close())')
    other = browser.page(1280, 720)
    other.go(whole)
    other.wait(f"{STATE} === 'LIVE' && {DIVISION} === {json.dumps(page.run(DIVISION))}", "the same view elsewhere")
    check("with it, it opens the same view elsewhere", other.run("!root.querySelector('.pane.spectrum').hidden"))
    stranger = browser.page(1280, 720)
    stranger.go(server.base + "#token=wrong")
    stranger.wait("root.querySelector('dialog[open] input[type=password]')?.getClientRects().length", "the question for a token")
    check("a wrong token is requested again", not stranger.run(f"{CYCLES} > 0"))
    stranger.run(f"""(() => {{ const input = root.querySelector("dialog input[type=password]"); input.value = {json.dumps(server.token)};
        input.form.requestSubmit(); }})()""")
    stranger.wait(f'{STATE} === "LIVE"', "the right token")
    check("... and the right one lets in", True)
    stranger.close()
    other.close()


def source(browser, page, grebe):
    page.click("source")
    page.wait("!!root.querySelector('aside[aria-label=source]')", "what can be changed")
    page.click("slower")
    page.wait(f"{NOTICE}.includes('--control')", "words for who may only look")
    check(f"a viewer without control gets a notice: {page.run(NOTICE)}", True)
    page.click("source")
    server = Server(grebe, "--control", link=2)
    other = browser.page(1280, 720)
    other.go(server.link + "&span=0.005")
    stream = 'root.querySelector(".stream").textContent'
    other.wait(f'{STATE} === "LIVE" && {stream}.includes("200 k")', "live with the second link")
    other.click("source")
    other.wait("!!root.querySelector('aside[aria-label=source]')", "controls")
    other.screenshot(KEPT / "page-source.png")
    other.click("slower")
    other.wait(f'{stream}.includes("100 k")', "the generator's next lower rate")
    check(f"the second link changes the source: {other.run(stream)}", True)
    other.close()
    server.close()


def next_source(page):
    page.press("&")
    page.wait("!root.querySelector('.list').hidden", "the list of sources")
    page.press("ArrowDown")
    page.press("Enter")


def sources(browser, grebe):
    server = Server(grebe, sources=(SOURCE, "synth:triangle?channels=1&frequency=500&rate=100k"))
    page = browser.page(1280, 720)
    page.go(server.link + "&span=0.01&measure=true")
    menu = 'root.querySelector(".sources")'
    stream = 'root.querySelector(".stream").textContent'
    page.wait(f'{STATE} === "LIVE" && {menu}.options.length === 2 && {stream}.includes("200 k")', "the menu of sources")
    page.run(f'{menu}.focus(), {menu}.value = "2", {menu}.dispatchEvent(new Event("change"))')
    page.wait(f'{STATE} === "LIVE" && {stream}.includes("100 k") && root.querySelectorAll(".names .name").length === 1', "the second source")
    check("the menu shows another source, and stays where it is", page.run(f"root.activeElement === {menu}"))
    page.screenshot(KEPT / "page-sources.png")
    page.run(f"{menu}.blur()")
    next_source(page)
    page.wait(f'{STATE} === "LIVE" && {stream}.includes("200 k") && {DIVISION} === "1 ms/div"', "the first again")
    check("... and the first is as it was left", page.wait('!!root.querySelector("table[aria-label=measurements]")', "its table"))
    next_source(page)
    page.wait(f'{stream}.includes("100 k")', "the second again")
    page.send("Page.reload")
    page.wait(f'{STATE} === "LIVE" && {stream}.includes("100 k")', "the second, loaded anew")
    check("loaded anew, the page shows the source that was chosen", page.run("location.hash") == "#source=2")
    page.close()
    server.close()


HEAR = """(() => { const { start } = AudioBufferSourceNode.prototype; window.heard = [];
    AudioBufferSourceNode.prototype.start = function () { heard.push(this.buffer); start.call(this); }; return true; })()"""
TONE = """(() => { const { duration, numberOfChannels } = heard.at(-1), samples = heard.at(-1).getChannelData(0);
    return [duration, samples.filter((sample, at) => at > 0 && samples[at - 1] < 0 && sample >= 0).length / duration, numberOfChannels]; })()"""


def modulated(path):
    """Two seconds of a carrier at 0 Hz, modulated by 1 kHz in amplitude, over noise."""
    wave = array("f")
    for at in range(192_000):
        wave.extend((0.4 + 0.3 * math.sin(math.tau * at / 96) + random.gauss(0, 1e-3), random.gauss(0, 1e-3)))
    path.with_suffix(".sigmf-data").write_bytes(wave.tobytes())
    stated = {"core:datatype": "cf32_le", "core:sample_rate": 96_000, "core:version": "1.0.0"}
    path.write_text(json.dumps({"global": stated, "captures": [{"core:sample_start": 0}], "annotations": []}))


def listen_live(browser, grebe):
    server = Server(grebe, sources=("synth:noise?rate=96k&format=ci16",))
    page = browser.page(1280, 720)
    page.go(server.link + "&span=2&show.waterfall=true")
    page.wait(WATERFALL, "the waterfall of a stream")
    page.run(HEAR)
    draw_box(page, (0.4, 0.3), (0.6, 0.7))
    page.wait("[...root.querySelectorAll('.pane.waterfall button')].some((it) => it.textContent === 'live')", "its buttons")
    page.click("live")
    rate, seconds = page.wait("heard.length > 20 && [heard[0].sampleRate, heard.reduce((sum, it) => sum + it.duration, 0)]", "two seconds of live sound")
    check(f"a band is heard live: {seconds:.1f} s at {rate:.0f} S/s", 2 <= seconds < 60 and rate in (8000, 12000, 16000, 24000, 32000, 48000))
    loudest = page.run("Math.max(...heard.at(-1).getChannelData(0))")
    said = page.run("""[...root.querySelectorAll(".player:not([hidden]) > :is(button, input):not([hidden])")].map((it) => it.ariaLabel ?? it.textContent)""")
    check(f"... as loud as {loudest:.3f}, with {', '.join(said)}", loudest > 0.001 and said == ["volume"])
    page.screenshot(KEPT / "page-listen-live.png")
    page.click("stop")
    page.wait("[...root.querySelectorAll('.pane.waterfall button')].some((it) => it.textContent === 'live')", "the end of it")
    complaints = page.complaints()
    check(f"the console has no complaint {complaints or ''}", not complaints)
    page.close()
    server.close()


def listen(browser, grebe):
    path = KEPT / "modulated.sigmf-meta"
    modulated(path)
    server = Server(grebe, sources=(str(path),))
    for theme in ("dark", "light"):
        page = browser.page(1280, 720, theme)
        page.go(server.link + "&span=2&show.waterfall=true")
        page.wait(WATERFALL, "the waterfall of a recording")
        page.run(HEAR)
        draw_box(page, (0.4, 0.3), (0.6, 0.7))
        page.wait("[...root.querySelectorAll('.pane.waterfall button')].some((it) => it.textContent === 'listen')", "its buttons")
        page.click("FM")
        page.wait("!root.querySelector('.list').hidden", "the modulations")
        page.click("AM")
        page.wait("[...root.querySelectorAll('.pane.waterfall .choice')].some((it) => it.textContent === 'AM')", "another modulation")
        page.click("listen")
        duration, tone, channels = page.wait(f"heard.length === 1 && {TONE}", "the sound of a box")
        # Four tenths of the pane, of which a tenth is not waterfall.
        check(f"{theme}: the box of AM sounds for {duration:.2f} s at {tone:.0f} Hz", 0.8 < duration < 1 and abs(tone - 1000) < 10 and channels == 1)
        said = page.run("""[...root.querySelectorAll(".player:not([hidden]) > :is(button, input)")].map((it) => it.ariaLabel ?? it.textContent)""")
        check(f"... with {', '.join(said)}", said == ["stop", "loop", "volume"])
        page.screenshot(KEPT / f"page-listen-{theme}.png")
        page.click("stop")
        page.click("loop")
        check("the loop ends", page.run("root.querySelector('.player [aria-pressed=false]').textContent") == "loop")
        page.click("play")
        check("... and it plays again", page.run("heard.length === 2 && heard[0] === heard[1]"))
        if theme == "dark":
            page.wait("root.querySelector('.player button').textContent === 'play'", "the end of a sound that is played once")
            check("once, without a loop", page.run("heard.length") == 2)
        complaints = page.complaints()
        check(f"the console has no complaint {complaints or ''}", not complaints)
        page.close()
    server.close()


def cut(browser, server):
    way = Way(server.port)
    page = browser.page(1280, 720, "light")
    page.go(f"http://127.0.0.1:{way.port}/#token={server.token}&span=0.005&measure=true")
    page.wait(f'{STATE} === "LIVE" && {DIVISION} === "500 µs/div"', "live through the way")
    way.cut()
    page.wait(f'{STATE} === "OFFLINE" && {NOTICE}.includes("Trying again")', "words about the cut")
    check(f"a lost connection gets a notice: {page.run(NOTICE)}", page.run("!!root.querySelector('.name')"))
    page.screenshot(KEPT / "page-cut.png")
    time.sleep(5)
    check("... as long as it lasts", page.run(STATE) == "OFFLINE")
    way.mend()
    page.wait(f'{STATE} === "LIVE"', "live again")
    # The words before its first picture are those of a scope that waits.
    page.wait(f'{STATE} === "LIVE" && {DIVISION} === "500 µs/div"', "its settings")
    check("it comes back by itself, with its settings", moves(page))
    page.close()


def slow(browser, server):
    """With a path delay of a second, a zoom is visible before its picture arrives."""
    way = Way(server.port, delay_s=0.5)
    page = browser.page(1280, 720)
    page.go(f"http://127.0.0.1:{way.port}/#token={server.token}&span=0.01")
    page.wait(f'{STATE} === "LIVE" && {DIVISION} === "1 ms/div" && Math.abs({CYCLES} - 10) <= 1', "ten cycles of 1 kHz")
    page.press("+")
    early = page.wait(f"Math.abs({CYCLES} - 5) <= 1 && {DIVISION}", "five cycles")
    check(f"a zoom is drawn at once: five cycles while it says {early}", early == "1 ms/div")
    page.wait(f'{DIVISION} === "500 µs/div" && Math.abs({CYCLES} - 5) <= 1', "the words")
    page.drag((400, 300), (700, 300))
    early = page.wait(f'Math.abs({CYCLES} - 5) > 1 && root.querySelector(".state").textContent', "a stretch that has not come")
    # Beside a busy machine the last picture may be old by then; that it is paused, nobody has said yet.
    check(f"... and a move, while it says {early}", early in ("LIVE", "STALE"))
    page.wait(f'{STATE} === "PAUSED" && root.querySelector(".exact").textContent === "exact" && Math.abs({CYCLES} - 5) <= 1', "the exact picture")
    check("the exact picture follows", True)
    page.close()


def terminal_words(grebe, link, session, cells):
    """The text of `grebe view` in a terminal of 200 x 50."""
    pid, end = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", COLUMNS="200", LINES="50")
        os.execv(grebe, [grebe, "view", link, "--term", "--session", str(session)])
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
    written, words, until = b"", "", time.monotonic() + 20
    while time.monotonic() < until and not all(cell in words for cell in cells):
        if select.select([end], [], [], 0.2)[0]:
            written += os.read(end, 1 << 16)
            words = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written.decode(errors="replace"))
    os.write(end, b"q")
    os.close(end)
    os.waitpid(pid, 0)
    return words


def same_words(browser, grebe):
    """The table of a whole recording equals that of the terminal, with the recording's units."""
    server = Server(grebe, sources=("examples/data/ecg.sigmf-meta",))
    page = browser.page(1280, 720)
    page.go(server.link + "&span=7200&measure=true")
    rows = '[...root.querySelectorAll("table[aria-label=measurements] tbody tr")].map((row) => [...row.cells].map((it) => it.textContent))'
    seen = page.wait(f"{rows}.length && {rows}", "a table")
    session = KEPT / "session.toml"
    session.write_text("span_s = 7200.0\nmeasure = true\n")
    cells = [cell for row in seen for cell in row]
    words = terminal_words(grebe, f"serve://127.0.0.1:{server.port}?token={server.token}", session, cells)
    missing = [cell for cell in cells if cell not in words]
    check(f"the table has the words of the terminal: {seen[0]} {missing or ''}", not missing)
    page.close()
    server.close()


def phone(browser, server, theme):
    page = browser.page(390, 844, theme, is_phone=True)
    page.go(server.link + "&span=0.005&measure=true&show.spectrum=true")
    page.wait(f'{STATE} === "LIVE" && {DIVISION} === "500 µs/div"', "live on a phone")
    page.wait("root.querySelectorAll('table[aria-label=measurements] td').length", "numbers on a phone")
    page.screenshot(KEPT / f"page-390-{theme}.png")
    check(f"390 pixels, {theme}: nothing is wider than the screen", page.run("document.scrollingElement.scrollWidth <= innerWidth"))
    if theme == "dark":
        page.touch("touchStart", [(180, 420), (220, 420)])
        for step in range(1, 8):
            page.touch("touchMove", [(180 - 10 * step, 420), (220 + 10 * step, 420)])
        page.touch("touchEnd", [])
        page.wait(f'{DIVISION} !== "500 µs/div" && {STATE} === "PAUSED"', "two fingers")
        check(f"two fingers zoom: {page.run(DIVISION)}", True)
    open_find(page)
    look_for(page, "edge --level 0 --channels 2")
    page.press("}")
    page.wait(f'{STATE} === "PAUSED" && root.querySelector(".exact").textContent === "exact"', "what was found on a phone")
    page.screenshot(KEPT / f"page-390-find-{theme}.png")
    page.press("End")
    page.press("Escape")
    page.close()


EVERYTHING = "&span=0.005&measure=true&show.spectrum=true&show.waterfall=true"
PARTS = '["header", ".notice", ".plot", ".pane.spectrum", ".pane.waterfall", ".panes > canvas", ".tables"]'
ONE_BELOW_THE_OTHER = f"""(() => {{ const parts = {PARTS}.map((it) => root.querySelector(it).getBoundingClientRect());
    return parts.slice(1).every((it, at) => it.top >= parts[at].bottom - 1 && it.height > 0); }})()"""
# The state and the name of the source are inside the window, and the stream's words are whole.
NAMED = """[".state", ".source", ".stream"].every((it) => { const node = root.querySelector(it), { left, right, width } = node.getBoundingClientRect();
    return width > 20 && left >= 0 && right <= innerWidth && (it === ".source" || node.scrollWidth <= node.clientWidth + 1); })"""


def sizes(browser, server, grebe):
    for width, height, is_phone in ((390, 844, True), (844, 390, True), (810, 700, False), (900, 700, False)):
        page = browser.page(width, height, is_phone=is_phone)
        page.go(server.link + EVERYTHING)
        page.wait('root.querySelectorAll("table[aria-label=signals] td").length', f"tables at {width} pixels")
        page.wait(ONE_BELOW_THE_OTHER, f"{width} x {height}: one part below the other")
        page.wait(NAMED, f"{width} x {height}: state, source and stream")
        page.screenshot(KEPT / f"page-{width}.png")
        check(f"{width} x {height}: no part lies over another, state and name are there", True)
        page.click("channels")
        page.wait("""(() => { const top = root.querySelector("aside[aria-label=channels]")?.getBoundingClientRect().top;
            return top >= 0 && top < innerHeight - 40; })()""", "the panel in sight")
        page.press("?")
        titles = '[...root.querySelectorAll(".keys section")].filter((it) => it.getClientRects().length).map((it) => it.querySelector("h3").textContent)'
        shown = page.wait(f"{titles}.length && {titles}", "the help")
        check(f"{width} x {height}: the channels open in sight, the help lists {', '.join(shown)}", ("fingers" in shown) == is_phone and ("time" in shown) != is_phone)
        page.close()
    server = Server(grebe, sources=("synth:sine?channels=32&frequency=1k&rate=10k",))
    for width, height, is_phone in ((390, 844, True), (900, 700, False)):
        page = browser.page(width, height, is_phone=is_phone)
        page.go(server.link + "&span=0.005")
        page.wait("root.querySelector('.scroller').scrollHeight > 1000", "lanes that scroll")
        last = "[...root.querySelectorAll('.names .name')].filter((it) => !it.hidden).at(-1)?.textContent"
        # The head may still grow, which leaves less room for the lanes.
        page.wait(f"(root.querySelector('.scroller').scrollTop = 1e6, {last}?.startsWith('CH32'))", "the last lane")
        check(f"{width} x {height}: 32 lanes scroll", True)
        page.close()
    server.close()


def pictures(browser, server):
    for theme in ("dark", "light"):
        page = browser.page(1920, 1080, theme)
        page.go(server.link + "&span=0.005&measure=true&show.spectrum=true&show.waterfall=true&show.channel_panel=true")
        page.wait(f'{STATE} === "LIVE" && root.querySelectorAll("table td").length && {WATERFALL}', f"1920 pixels, {theme}")
        page.screenshot(KEPT / f"page-1920-{theme}.png")
        open_find(page)
        look_for(page, "pulse --channels 1 --level 0 --shorter 600us")
        page.press("}")
        page.wait(f'{STATE} === "PAUSED" && root.querySelector(".exact").textContent === "exact"', "what was found")
        page.screenshot(KEPT / f"page-1920-find-{theme}.png")
        colour = page.run('getComputedStyle(root.querySelector(".grebe")).backgroundColor')
        check(f"1920 pixels, {theme}: {colour}", (sum(map(int, re.findall(r"\d+", colour)[:3])) < 200) == (theme == "dark"))
        page.close()


def modules(page):
    failed = page.run(Path("ci/page_modules.js").read_text().rstrip().removesuffix(";"))
    check(f"its modules do what they say {failed or ''}", failed == [])


def vectors(page):
    """The page's decoder reads the output of the Rust codec."""
    messages = Path("crates/grebe-serve/tests/vectors.json").read_text()
    script = Path("ci/page_vectors.js").read_text()
    script = script[script.index("async") :].rstrip()
    failed = page.run(f"await ({script})({messages})")
    check(f"its decoder reads {messages.count('bytes')} messages of the Rust codec bit for bit {failed or ''}", failed == [])


def embedded(browser, grebe):
    folder = KEPT / "embedding"
    folder.mkdir(exist_ok=True)
    handler = partial(SimpleHTTPRequestHandler, directory=folder)
    handler.log_message = lambda *_: None
    SimpleHTTPRequestHandler.log_message = lambda *_: None
    dashboard = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    Thread(target=dashboard.serve_forever, daemon=True).start()
    origin = f"http://127.0.0.1:{dashboard.server_port}"
    server = Server(grebe, "--frame-origin", origin)
    (folder / "module.html").write_text(f"""<!doctype html><div id="scope" style="height:600px"></div><script type="module">
        import {{ attach }} from "{server.base}embed.js";
        attach(document.getElementById("scope"), {{ token: "{server.token}", view: "span=0.005" }});</script>""")
    (folder / "frame.html").write_text(f'<!doctype html><iframe id="frame" width="900" height="600" src="{server.link}"></iframe>')
    page = browser.page(1280, 720)
    page.go(f"{origin}/module.html")
    page.wait(f'{STATE} === "LIVE" && {CYCLES} > 2', "the module in another page")
    check("a dashboard of another origin shows it by the module", True)
    page.go(f"{origin}/frame.html")
    end = time.monotonic() + 60
    while not any(url.startswith(server.base.replace("http", "ws")) for url in sockets(page)) and time.monotonic() < end:
        time.sleep(0.1)
    check("... and in a frame", any(url.startswith(server.base.replace("http", "ws")) for url in sockets(page)))
    page.close()
    server.close()
    dashboard.shutdown()


def sockets(page):
    with page.browser.wake:
        return [event["params"]["url"] for event in page.browser.events if event["method"] == "Network.webSocketCreated"]


def main():
    grebe, chromium = sys.argv[1:]
    KEPT.mkdir(parents=True, exist_ok=True)
    browser, server = Browser(chromium), Server(grebe)
    try:
        page = first_picture(browser, server)
        zoom_and_pan(page)
        trigger(page)
        pause_and_scroll(page)
        triggers(page)
        find(page)
        numbers(page)
        accessible(page)
        modules(page)
        vectors(page)
        links(browser, page, server)
        source(browser, page, grebe)
        sources(browser, grebe)
        listen(browser, grebe)
        listen_live(browser, grebe)
        complaints = page.complaints()
        check(f"the console has no complaint {complaints or ''}", not complaints)
        page.close()
        cut(browser, server)
        slow(browser, server)
        same_words(browser, grebe)
        for theme in ("dark", "light"):
            phone(browser, server, theme)
        sizes(browser, server, grebe)
        pictures(browser, server)
        embedded(browser, grebe)
    finally:
        browser.close()
        server.close()
    print(f"{checks} passed, 0 failed")


main()
