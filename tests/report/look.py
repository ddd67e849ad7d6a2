"""Opens a report in a real browser and looks at it as a reader would: `python3 tests/report/look.py FILE [--shots FOLDER]`.

Drives a headless Chromium over its debugging pipe, with the standard library alone. On a phone and on a desk, in light and in
dark: nothing may be wider than the screen, every section is there and seen, every text can be read against its ground, no
request leaves, the console stays silent, and what strangers wrote stays text.
"""

import argparse
import base64
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

SECTIONS = ["figures", "networks", "days", "rates", "holds", "cases", "offers"]
SCREENS = [("phone", 390, 844, True), ("desk", 1280, 800, False)]
SCHEMES = ["light", "dark"]

# Texts that the example writes as the names of offers: there to be read, and to do nothing.
HOSTILE = [
    "<script>document.title='taken'</script>",
    "<img src=x onerror=\"document.title='taken'\">",
    "\"><svg onload=document.title='taken'>",
    "</td></table></section></main>",
    "</style><style>*{display:none}",
    "javascript:document.title='taken'",
    "&lt;i&gt; &amp; 100% 'quoted'",
]

MEASURE = r"""
(sections => {
  const seen = element => {
    const box = element.getBoundingClientRect();
    const style = getComputedStyle(element);
    return box.width > 0 && box.height > 0 && style.visibility === 'visible' && style.opacity === '1';
  };
  const parse = color => (color.match(/[\d.]+/g) || []).map(Number);
  const ground = element => {
    for (let at = element; at; at = at.parentElement) {
      const [r, g, b, a = 1] = parse(getComputedStyle(at).backgroundColor);
      if (a === 1) return [r, g, b];
    }
    return matchMedia('(prefers-color-scheme: dark)').matches ? [0, 0, 0] : [255, 255, 255];
  };
  const light = color => {
    const part = value => (value /= 255) <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    return 0.2126 * part(color[0]) + 0.7152 * part(color[1]) + 0.0722 * part(color[2]);
  };
  const contrast = element => {
    const [a, b] = [light(parse(getComputedStyle(element).color)), light(ground(element))];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  };
  const all = [...document.querySelectorAll('body *')];
  const texts = all.filter(e => [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) && e.checkVisibility());
  const outside = all.filter(e => {
    if (!e.checkVisibility() || e.closest('.scroll') !== null && !e.matches('.scroll')) return false;
    const box = e.getBoundingClientRect();
    return box.right > innerWidth + 0.5 || box.left < -0.5;
  });
  return {
    title: document.title,
    lang: document.documentElement.lang,
    scheme: matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light',
    width: innerWidth,
    wide: Math.max(document.documentElement.scrollWidth, document.body.scrollWidth),
    outside: outside.slice(0, 5).map(e => e.outerHTML.slice(0, 120)),
    missing: sections.filter(id => { const e = document.getElementById(id); return !e || !seen(e) || !seen(e.querySelector('h2')); }),
    active: document.querySelectorAll('script, img, iframe, object, embed, link, base, form, a, audio, video').length,
    handlers: all.filter(e => [...e.attributes].some(a => a.name.startsWith('on') || a.name === 'href')).length,
    charts: document.querySelectorAll('figure svg[role=img][aria-label]').length,
    figures: document.querySelectorAll('figure').length,
    tables: document.querySelectorAll('figure + details table').length,
    bars: document.querySelectorAll('figure svg rect').length,
    unlabelled: document.querySelectorAll('table th:not([scope])').length,
    faint: [...new Set(texts.filter(e => contrast(e) < 4.5).map(e => e.outerHTML.slice(0, 120)))].slice(0, 5),
    small: [...new Set(texts.filter(e => parseFloat(getComputedStyle(e).fontSize) < 12).map(e => e.outerHTML.slice(0, 120)))].slice(0, 5),
    text: document.body.textContent,
    height: document.documentElement.scrollHeight,
  };
})
"""


class Browser:
    """A Chromium that is asked over file descriptors 3 and 4: a JSON message, then a zero byte."""

    def __init__(self, folder):
        program = shutil.which("chromium") or sys.exit("no `chromium` is installed")
        (to_read, self.to), (self.back, to_write) = os.pipe(), os.pipe()

        def descriptors():
            # Out of the way first: either may be the other's place.
            read, write = os.dup(to_read), os.dup(to_write)
            os.dup2(read, 3)
            os.dup2(write, 4)

        arguments = [
            program, "--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--hide-scrollbars", f"--user-data-dir={folder}/profile", "about:blank",
        ]
        self.process = subprocess.Popen(
            arguments, preexec_fn=descriptors, close_fds=False, start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "HOME": folder},
        )
        os.close(to_read)
        os.close(to_write)
        self.number = 0
        self.rest = b""
        self.events = []

    def message(self):
        while b"\0" not in self.rest:
            read = os.read(self.back, 1 << 16)
            if not read:
                sys.exit("the browser ended")
            self.rest += read
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def ask(self, method, session=None, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.number:
                if "error" in answer:
                    sys.exit(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def wait(self, method):
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self.message())

    def end(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def look(browser, url, screen, scheme, shots):
    """The faults that a reader would meet on this screen."""
    name, width, height, mobile = screen
    target = browser.ask("Target.createTarget", url="about:blank")["targetId"]
    page = browser.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    for domain in ["Page", "Runtime", "Log", "Network"]:
        browser.ask(f"{domain}.enable", page)
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}
    browser.ask("Emulation.setDeviceMetricsOverride", page, **size)
    browser.ask("Emulation.setEmulatedMedia", page, features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.events.clear()
    browser.ask("Page.navigate", page, url=url)
    browser.wait("Page.loadEventFired")
    answer = browser.ask(
        "Runtime.evaluate", page, expression=f"({MEASURE})({json.dumps(SECTIONS)})", returnByValue=True
    )
    seen = answer["result"].get("value") or sys.exit(f"the page cannot be measured: {answer}")
    if shots:
        clip = {"x": 0, "y": 0, "width": width, "height": seen["height"], "scale": 1}
        shot = browser.ask("Page.captureScreenshot", page, captureBeyondViewport=True, clip=clip)
        (shots / f"{name}-{scheme}.png").write_bytes(base64.b64decode(shot["data"]))

    asked = [
        event["params"]["request"]["url"] for event in browser.events if event.get("method") == "Network.requestWillBeSent"
    ]
    noise = [
        event["params"] for event in browser.events
        if event.get("method") in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
    ]
    browser.ask("Target.closeTarget", targetId=target)

    expected = {
        "the page asks for nothing but itself": asked == [url],
        "the console is silent": not noise,
        "nothing is wider than the screen": seen["wide"] <= seen["width"] == width and not seen["outside"],
        "every section is seen": not seen["missing"],
        "the scheme is the reader's": seen["scheme"] == scheme,
        "nothing on the page can run, load or lead away": seen["active"] == seen["handlers"] == 0,
        "the title is ours": seen["title"] == "November 2026: offer networks" and seen["lang"] == "en",
        "every chart has a label and a table": seen["charts"] == seen["figures"] == seen["tables"] > 1,
        "charts have bars": seen["bars"] > 100,
        "every head of a table says what it heads": seen["unlabelled"] == 0,
        "every text stands out from its ground": not seen["faint"],
        "no text is smaller than 12 pixels": not seen["small"],
        "what strangers wrote is there as text": all(text in seen["text"] for text in HOSTILE),
        "no text turns another around": "\u202e" not in seen["text"],
    }
    detail = {key: seen[key] for key in ("width", "wide", "outside", "missing", "active", "handlers", "faint", "small")}
    faults = [f"{name}, {scheme}: not so: {what}" for what, so in expected.items() if not so]
    return faults + ([f"  {json.dumps({**detail, 'asked': asked, 'noise': noise})}"] if faults else [])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("report", type=pathlib.Path)
    parser.add_argument("--shots", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.shots:
        arguments.shots.mkdir(parents=True, exist_ok=True)
    url = arguments.report.resolve(strict=True).as_uri()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        browser = Browser(folder)
        # A browser that hangs must not hang whoever asked.
        signal.signal(signal.SIGALRM, lambda *_: sys.exit("the browser did not answer for two minutes"))
        signal.alarm(120)
        try:
            faults = [
                fault for screen in SCREENS for scheme in SCHEMES
                for fault in look(browser, url, screen, scheme, arguments.shots)
            ]
        finally:
            browser.end()
    if faults:
        sys.exit("\n".join(faults))
    print(f"{arguments.report.name}: as it should be, on {len(SCREENS)} screens in {' and '.join(SCHEMES)}")


if __name__ == "__main__":
    main()
