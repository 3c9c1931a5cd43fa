"""The page of `train --report` in headless Chromium: it shows, nothing is asked for, and the console stays empty.

    python3 report_browser.py GRAPHRUN SOURCES

Exit code 77: there is no Chromium. Its policy forbids the page every request and every script: one that tries is told of
on the console.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def browse(browser, folder, page, *flags):
    """The document as the browser has it, and what it said."""
    command = [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-extensions",
               "--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr",
               f"--user-data-dir={folder}/profile", *flags, page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def main(graphrun, sources):
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        print(f"skipped: none of {', '.join(BROWSERS)} is installed")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder, "run.html")
        subprocess.run([graphrun, "train", f"{sources}/models/digits.json", "--quiet", "--epochs=5", f"--report={page}"],
                       check=True, stdout=subprocess.DEVNULL)
        document, console = browse(browser, folder, page, "--dump-dom")
        failures = [f"the console says: {line}" for line in console]
        for part in ("<h1>digits", "prefers-color-scheme: dark", "recall", "wrong", "The memory plan"):
            if part not in document:
                failures.append(f"the page has no {part}")
        for address in re.findall(r"""(?:src|href)=["'](?!data:|#)([^"']*)""", document):
            failures.append(f"the page asks for {address}")
        if page.stat().st_size >= 2 << 20:
            failures.append(f"the page has {page.stat().st_size} bytes")
        # A page that does ask: the test would see it.
        bad = pathlib.Path(folder, "bad.html")
        bad.write_text(page.read_text().replace("<main>", '<main><img src="https://localhost/x.png"><script>1</script>'))
        if not browse(browser, folder, bad, "--dump-dom")[1]:
            failures.append("a page that asks for a picture and has a script is not told of on the console")
        print("\n".join(failures) or f"{page.stat().st_size} bytes, nothing on the console, no request")
        return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
