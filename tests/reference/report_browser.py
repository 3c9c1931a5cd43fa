"""The pages of `train --report` and the picture of `show --svg` in headless Chromium: they show, on light and on dark,
nothing is asked for, and the console stays empty.

    python3 report_browser.py GRAPHRUN SOURCES

Exit code 77: there is no Chromium. A page's policy forbids it every request and every script: one that tries is told of
on the console.
"""

import base64
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import xml.dom.minidom
import zlib

BROWSERS = ("chromium", "chromium-browser", "google-chrome")

# Of a model: how it is trained, and what its page says.
PAGES = {
    "digits": (["--epochs=5"], ("recall", "misclassified", "by class", "correct</", "Confusion matrix as a table")),
    "peaks": (["--epochs=20"], ("r2", "surface on the train split", "residuals", "quantiles")),
    "logistic_regression": (["--epochs=20"], ("recall", "precision", "accuracy", "average precision")),
}
ON_EACH = ("prefers-color-scheme: dark", "The graph, each value below", "The graph as text", "The memory plan", "parameters",
           "loss over the epochs")


def browse(browser, folder, page, *flags):
    """The document as the browser has it, and what it said."""
    command = [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-extensions",
               "--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr",
               f"--user-data-dir={folder}/profile", *flags, page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def brightness(picture):
    """The mean of a PNG of eight bits a channel, from 0 to 255."""
    bytes_ = picture.read_bytes()
    width, height, _, kind = struct.unpack(">IIBB", bytes_[16:26])
    channels = {2: 3, 6: 4}[kind]
    packed, at = b"", 8
    while at < len(bytes_):
        size, = struct.unpack(">I", bytes_[at:at + 4])
        if bytes_[at + 4:at + 8] == b"IDAT":
            packed += bytes_[at + 8:at + 8 + size]
        at += size + 12
    lines = zlib.decompress(packed)
    row = width * channels
    above, total = bytearray(row), 0
    for y in range(height):
        how, line = lines[y * (row + 1)], bytearray(lines[y * (row + 1) + 1:(y + 1) * (row + 1)])
        for i in range(row):
            left = line[i - channels] if i >= channels else 0
            corner = above[i - channels] if i >= channels else 0
            if how == 1:
                line[i] = (line[i] + left) & 255
            elif how == 2:
                line[i] = (line[i] + above[i]) & 255
            elif how == 3:
                line[i] = (line[i] + (left + above[i]) // 2) & 255
            elif how == 4:
                p = left + above[i] - corner
                distances = (abs(p - left), abs(p - above[i]), abs(p - corner))
                line[i] = (line[i] + (left, above[i], corner)[distances.index(min(distances))]) & 255
        total += sum(line[i] for i in range(row) if i % channels < 3)
        above = line
    return total / (width * height * 3)


def looks(browser, folder, page):
    """What is wrong with its looks: on light it is light, on dark it is dark."""
    seen = {}
    for name, flags in (("light", []), ("dark", ["--blink-settings=preferredColorScheme=0"])):
        picture = pathlib.Path(folder, f"{page.stem}-{name}.png")
        browse(browser, folder, page, f"--screenshot={picture}", "--window-size=600,600", "--hide-scrollbars", *flags)
        seen[name] = brightness(picture)
    if seen["light"] > 200 and seen["dark"] < 80:
        return []
    return [f"{page.name}: its brightness is {seen['light']:.0f} on light and {seen['dark']:.0f} on dark"]


def check_page(browser, folder, graphrun, sources, name):
    options, parts = PAGES[name]
    page = pathlib.Path(folder, f"{name}.html")
    subprocess.run([graphrun, "train", f"{sources}/models/{name}.json", "--quiet", *options, f"--report={page}"],
                   check=True, stdout=subprocess.DEVNULL)
    document, console = browse(browser, folder, page, "--dump-dom")
    failures = [f"the console says: {line}" for line in console]
    pictures = [base64.b64decode(one).decode() for one in re.findall(r"data:image/svg\+xml;base64,([^\"]*)", document)]
    text = document + "".join(pictures)
    failures += [f"the page has no {part}" for part in (f"<h1>{name}", *ON_EACH, *parts) if part not in text]
    failures += [f"the page asks for {address}"
                 for address in re.findall(r"""(?:src|href)=["'](?!data:|#)([^"']*)""", document)]
    for picture in pictures:
        xml.dom.minidom.parseString(picture)
    if page.stat().st_size >= 2 << 20:
        failures.append(f"the page has {page.stat().st_size} bytes")
    return page, [f"{name}: {failure}" for failure in failures]


def main(graphrun, sources):
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        print(f"skipped: none of {', '.join(BROWSERS)} is installed")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        failures, sizes = [], []
        for name in PAGES:
            page, found = check_page(browser, folder, graphrun, sources, name)
            failures += found
            sizes.append(f"{name} {page.stat().st_size} bytes")
        failures += looks(browser, folder, page)
        graph = pathlib.Path(folder, "graph.svg")
        subprocess.run([graphrun, "show", f"{sources}/models/digits.json", "--svg", "-o", graph], check=True)
        document, console = browse(browser, folder, graph, "--dump-dom")
        failures += [f"graph.svg: the console says: {line}" for line in console]
        failures += [f"graph.svg has no {part}" for part in ("softmax_cross_entropy", "4,160 parameters") if part not in document]
        # A page that does ask: the test would see it.
        bad = pathlib.Path(folder, "bad.html")
        bad.write_text(page.read_text().replace("<main>", '<main><img src="https://localhost/x.png"><script>1</script>'))
        if not browse(browser, folder, bad, "--dump-dom")[1]:
            failures.append("a page that asks for a picture and has a script is not told of on the console")
        print("\n".join(failures) or f"{', '.join(sizes)}; nothing on the console, no request")
        return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
