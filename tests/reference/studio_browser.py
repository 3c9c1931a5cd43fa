"""The page of `graphrun studio` in headless Chromium, used as by its user: watches the example train and changes its
network, drops a CSV file, creates a model, trains, pauses, exports and predicts, then opens the graph, its values, the
memory plan and the runs. Fails if the page writes to
the console or sends a request to another server.

    python3 studio_browser.py GRAPHRUN SOURCES [FOLDER]

FOLDER receives screenshots of the page, wide and narrow, light and dark. Exit code 77: Chromium is not installed.
"""

import base64
import json
import math
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.parse

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


class WebSocket:
    """The subset of RFC 6455 that the debugger of a browser needs."""

    def __init__(self, url):
        at = urllib.parse.urlsplit(url)
        self.socket = socket.create_connection((at.hostname, at.port), timeout=60)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(f"GET {at.path} HTTP/1.1\r\nHost: {at.netloc}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        self.bytes = b""
        while b"\r\n\r\n" not in self.bytes:
            self.bytes += self.socket.recv(65536)
        self.bytes = self.bytes.split(b"\r\n\r\n", 1)[1]

    def take(self, count):
        while len(self.bytes) < count:
            more = self.socket.recv(1 << 20)
            if not more:
                raise ConnectionError("the browser has gone")
            self.bytes += more
        taken, self.bytes = self.bytes[:count], self.bytes[count:]
        return taken

    def send(self, text):
        data, mask = text.encode(), os.urandom(4)
        size = len(data)
        head = b"\x81" + (bytes([0x80 | size]) if size < 126 else b"\xfe" + struct.pack(">H", size) if size < 65536
                          else b"\xff" + struct.pack(">Q", size)) + mask
        self.socket.sendall(head + bytes(byte ^ mask[i % 4] for i, byte in enumerate(data)))

    def receive(self):
        text = b""
        while True:
            first, second = self.take(2)
            size = second & 127
            if size == 126:
                size, = struct.unpack(">H", self.take(2))
            elif size == 127:
                size, = struct.unpack(">Q", self.take(8))
            data = self.take(size)
            if first & 15 in (0, 1):
                text += data
                if first & 128:
                    return text.decode()


class Browser:
    """A page in headless Chromium, driven by the DevTools protocol."""

    def __init__(self, program, profile):
        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-extensions",
             "--disable-background-networking", "--remote-debugging-port=0", f"--user-data-dir={profile}", "about:blank"],
            stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        for line in self.process.stderr:
            if found := re.search(r"ws://\S+", line):
                break
        self.socket, self.last, self.session = WebSocket(found.group()), 0, None
        self.said, self.asked = [], []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log", "DOM"):
            self.call(f"{domain}.enable")

    def call(self, method, **parameters):
        self.last += 1
        message = {"id": self.last, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        self.socket.send(json.dumps(message))
        while True:
            answer = json.loads(self.socket.receive())
            if answer.get("id") == self.last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.hear(answer)

    def hear(self, event):
        what, values = event.get("method"), event.get("params", {})
        if what == "Network.requestWillBeSent":
            self.asked.append(values["request"]["url"])
        elif what == "Runtime.exceptionThrown":
            self.said.append(values["exceptionDetails"].get("exception", {}).get("description") or str(values))
        elif what == "Runtime.consoleAPICalled":
            self.said.append(" ".join(str(one.get("value")) for one in values["args"]))
        elif what == "Log.entryAdded":
            self.said.append(f"{values['entry']['text']} {values['entry'].get('url', '')}")

    def run(self, script):
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True, userGesture=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def until(self, script, seconds=40):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if value := self.run(f"(async () => Boolean(await ({script})))()"):
                return value
            time.sleep(0.05)
        raise TimeoutError(f"not so after {seconds} s: {script}\n{self.run('document.body.innerText')[-1500:]}")

    def click(self, selector):
        self.until(f"(() => {{ const one = document.querySelector({json.dumps(selector)}); return one && !one.disabled; }})()")
        self.run(f"document.querySelector({json.dumps(selector)}).click()")

    def look(self, path, width, height, dark):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        time.sleep(0.5)
        picture = self.call("Page.captureScreenshot", format="png")["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(picture))

    def end(self):
        self.process.terminate()
        self.process.wait()


def coffee(rows):
    """The table of docs/guide/tutorial.md."""
    at, lines = 1, ["minutes,start,room,temperature"]

    def next_number():
        nonlocal at
        at = at * 16807 % 2147483647
        return at / 2147483647
    for _ in range(rows):
        minutes, start, room = 60 * next_number(), 60 + 40 * next_number(), 15 + 15 * next_number()
        noise = next_number() + next_number() - 1
        lines.append(f"{minutes:.1f},{start:.1f},{room:.1f},{room + (start - room) * math.exp(-minutes / 18) + noise:.2f}")
    return "\n".join(lines) + "\n"


def pictures(page, folder, name):
    if folder:
        for size, (width, height) in {"wide": (1400, 900), "phone": (390, 844)}.items():
            for dark in (False, True):
                page.look(pathlib.Path(folder, f"{name}-{size}-{'dark' if dark else 'light'}.png"), width, height, dark)
        page.call("Emulation.clearDeviceMetricsOverride")


def drop(page, name, data):
    """Drops a file on the page; `data` has its bytes."""
    page.run(f"""(() => {{ const bytes = Uint8Array.from(atob({json.dumps(base64.b64encode(data).decode())}), (one) => one.charCodeAt(0));
        const files = new DataTransfer(); files.items.add(new File([bytes], {json.dumps(name)}));
        document.dispatchEvent(new DragEvent("drop", {{dataTransfer: files, bubbles: true, cancelable: true}})); }})()""")


def odd_tables(page):
    """Tables as spreadsheets write them, and one that is already in the folder."""
    columns = "[...document.querySelector('#target').options].map((one) => one.value).join()"
    rows = "".join(f"{7 * i % 13};{5 * i % 11};{i % 7}\n" for i in range(40))
    for name, data, wanted, note in (("fenster.csv", f"Größe;Höhe;Preis\n{rows}".encode("windows-1252"), "Größe,Höhe,Preis", "Windows-1252"),
                                     ("weit.csv", f"Größe;Höhe;Preis\n{rows}".encode("utf-16"), "Größe,Höhe,Preis", "3 columns"),
                                     ("bare.csv", rows.encode(), "c0,c1,c2", "3 columns"),
                                     ("Quoted Names ✓.csv", f'"a, b";"c";d\n{rows}'.encode(), "a, b,c,d", "3 columns")):
        drop(page, name, data)
        page.until(f"document.querySelector('#notes').textContent.includes({json.dumps(name)})")
        assert page.run(columns) == wanted, (name, page.run(columns))
        assert note in page.run("document.querySelector('#notes').textContent"), name
    page.run("(() => { const list = document.querySelector('#tables'); list.value = 'fenster.csv'; list.dispatchEvent(new Event('change')); })()")
    page.until("document.querySelector('#notes').textContent.startsWith('fenster.csv')")
    page.click("#create-model")
    page.until("document.querySelector('#text').value.includes('fenster.csv') && document.querySelector('#diagnostics .ok')?.textContent.startsWith('fenster')")


def controls(page):
    """Split fractions that sum to 1, emptied boxes, invalid numbers."""
    text = "document.querySelector('#text').value"
    def choose(label, value, wanted):
        page.run(f"(() => {{ const box = document.querySelector('[data-path=\"{label}\"], [aria-label=\"{label}\"]'), before = {text}; box.value = '{value}'; box.dispatchEvent(new Event('change')); if ({text} !== before) document.querySelector('#settings').firstElementChild.dataset.old = ''; }})()")
        page.until(f"document.querySelector('#diagnostics .ok') && ({wanted}) && !document.querySelector('[data-old]')")  # checked
    choose("data.split.0", "0.8", f"{text}.includes('\"split\": [0.8, 0.15, 0.05]')")
    choose("data.split.2", "0.1", f"{text}.includes('\"split\": [0.75, 0.15, 0.1]')")
    choose("train.clip_norm", "2", f"{text}.includes('\"clip_norm\": 2')")
    choose("train.clip_norm", "", f"!{text}.includes('clip_norm')")
    choose("units of h", "", "document.querySelector('[aria-label=\"units of h\"]').value === '8'")
    choose("units of h", "-3", f"{text}.includes('\"units\": 1, \"activation\": \"relu\"')")


def layers(page):
    """Edits between a change of the text and its check apply to the present text."""
    text = page.run("document.querySelector('#text').value")
    page.run("for (const _ of [1, 2]) document.querySelector('#add-layer').click()")
    page.until("document.querySelectorAll('.layer').length === 4 && document.querySelector('#diagnostics .ok')")
    names = page.run("JSON.parse(document.querySelector('#text').value).graph.map((one) => one.name ?? one).join()")
    assert names.startswith("h,h1,h2,y_hat,"), names
    page.run("for (const name of ['h1', 'h2']) document.querySelector(`[aria-label='remove ${name}']`).click()")
    page.until("document.querySelectorAll('.layer').length === 2 && document.querySelector('#diagnostics .ok')")
    assert json.loads(page.run("document.querySelector('#text').value")) == json.loads(text)
    page.run("for (const _ of [1, 2, 3]) document.querySelector('[aria-label=\"add a unit to h\"]').click()")
    assert page.run("JSON.parse(document.querySelector('#text').value).graph[0].units") == json.loads(text)["graph"][0]["units"] + 3
    # The controls of the previous model have gone when another one is there.
    assert page.run("""(() => { const list = document.querySelector('#example');
        list.value = '0'; list.dispatchEvent(new Event('change'));
        return document.querySelectorAll('#add-layer, #settings *').length; })()""") == 0
    page.until("document.querySelectorAll('.layer').length === 3 && document.querySelector('#diagnostics .ok')")


def same_as_final(what):
    """Script: whether the page shows the plot of the final weights, by its pixels."""
    return f"""(async () => {{
      const pixels = (image) => {{ const canvas = document.createElement('canvas'); [canvas.width, canvas.height] = [640, 400];
        canvas.getContext('2d').drawImage(image, 0, 0, 640, 400); return canvas.toDataURL(); }};
      const shown = document.querySelector('[data-what={what}] img'), final = new Image();
      if (!shown?.src) return false;
      final.src = shown.src.replace(/version=.*/, 'version=final');
      await final.decode();
      return pixels(shown) === pixels(final);
    }})()"""


def set_value(page, selector, value):
    """Sets a control as its user does."""
    page.run(f"""(() => {{ const one = document.querySelector({json.dumps(selector)}); one.value = {json.dumps(value)};
        one.dispatchEvent(new Event('input', {{bubbles: true}})); one.dispatchEvent(new Event('change', {{bubbles: true}})); }})()""")


# Largest difference of the drawn outputs from those of graphrun, over the rows of the test split.
DRAWN = """(async () => {
  const {state} = await import('/state.js'), {networkOf, sigmoid, valuesOf, weightsOf} = await import('/network_values.js');
  const facts = state.training.facts, network = networkOf(facts), flat = facts.rows.test.x;
  const inputs = [0, 1].map((i) => flat.filter((_, k) => k % 2 === i));
  const rows = 'u,v\\n' + inputs[0].map((u, k) => `${u},${inputs[1][k]}`).join('\\n') + '\\n';
  const answer = await (await fetch('/api/predict', {method: 'POST', headers: {'Content-Type': 'application/json'},
    body: JSON.stringify({rows, probabilities: 'yes'})})).json();
  const drawn = valuesOf(network, weightsOf(state.frames.at(-1)), inputs).at(-1)[0];
  return Math.max(...answer.predictions.map((row, k) => Math.abs(sigmoid(drawn[k]) - row[0])));
})()"""


def opening(page, folder):
    """The page opens on an example in training; its network can be changed meanwhile and replayed afterwards."""
    neurons = "document.querySelectorAll('.neuron').length"
    page.until("document.querySelector('#state').textContent === 'Running' && !document.querySelector('#training').hidden")
    page.until(f"{neurons} === 2 + 6 + 4 + 1 && Number(document.querySelector('#replay').value) > 5")
    widths = "[...document.querySelectorAll('.weight')].map((one) => one.getAttribute('stroke-width')).join()"
    before = page.run(widths)
    page.until(f"{widths} !== {json.dumps(before)}")
    page.until("/^Weight from u to h1/.test(document.querySelector('.network title').textContent)")
    pictures(page, folder, "begin")
    page.click("#network [aria-label='add a unit to h1']")
    page.until(f"{neurons} === 2 + 7 + 4 + 1 && document.querySelector('#state').textContent === 'Running'")
    page.click("#network [aria-label='add a layer']")
    page.until(f"{neurons} === 2 + 7 + 4 + 8 + 1")
    page.click("#network [aria-label='remove h3']")
    page.until(f"{neurons} === 2 + 7 + 4 + 1")
    set_value(page, "#speed", "0")
    page.until("document.querySelector('#state').textContent === 'Done' && !document.querySelector('#results').hidden")
    for activation in ("relu", "sigmoid", "gelu", "silu", "elu", "softplus", "none", "tanh"):
        number = page.run("import('/state.js').then(({state}) => state.training.number)")
        set_value(page, "#network [aria-label='activation of h1']", activation)
        page.until(f"import('/state.js').then(({{state}}) => state.training.number > {number} && state.training.state === 'done')")
        difference = page.run(DRAWN)
        assert difference < 1e-4, f"{activation}: the drawing differs from predict by {difference}"
    # Replay: the first epoch has the initial weights.
    final = page.run(widths)
    set_value(page, "#replay", "0")
    page.until("document.querySelector('#replay-text').textContent === 'Epoch 0, step 0'")
    page.until(f"{widths} !== {json.dumps(final)}")
    page.click("#latest")
    page.until(f"{widths} === {json.dumps(final)}")
    # The output shows the map of a chosen neuron.
    page.click(".neuron[data-name='h2[1]']")
    page.until("document.querySelector('#surface-title').textContent.startsWith('h2[1]')")
    page.click(".neuron[data-name='h2[1]']")
    page.until("document.querySelector('#surface-title').textContent.startsWith('Output')")
    # The results of the page are those that `graphrun train` prints.
    table = page.run("document.querySelector('#summary').innerText")
    assert re.search(r"accuracy\s+(0\.\d+|1)\s+0\.\d+", table), table
    # A change that is not valid is reported on this tab.
    set_value(page, "#quick [data-path='train.batch']", "0")
    page.until("/batch/.test(document.querySelector('#notice').textContent)")
    set_value(page, "#quick [data-path='train.batch']", "20")
    page.until("document.querySelector('#notice').hidden")
    assert page.run("fetch('/api/runs').then((one) => one.json()).then((one) => one.rows.length)") == 0, "it saved a run"


def use(page, url, work, graphrun, folder):
    page.call("Page.navigate", url=url)
    page.until("document.documentElement?.dataset.ready === 'yes'")
    assert page.run("location.search") == "", "the token stays in the address"
    assert page.run("document.cookie") == "", "scripts see the cookie"
    opening(page, folder)
    page.call("Page.reload")  # controls are as after the start
    page.until("document.documentElement?.dataset.ready === 'yes'")

    # Drop a table and create a model of it: the results of the example disappear.
    page.until("document.querySelector('#state').textContent === 'Done'")
    drop(page, "coffee.csv", coffee(2000).encode())
    page.until("!document.querySelector('#target-row').hidden")
    assert page.run("document.querySelector('#target').value") == "temperature"
    page.click("#create-model")
    page.until("document.querySelector('#diagnostics .ok')?.textContent.includes('parameters') && document.querySelector('#text').value.includes('coffee.csv')")
    page.until("document.querySelector('#state').textContent === 'Idle' && document.querySelector('#loss').textContent === '–'")

    # Other tables and controls, then the first table again: the studio does not write it twice.
    odd_tables(page)
    controls(page)
    layers(page)
    drop(page, "coffee.csv", coffee(2000).encode())
    page.until("document.querySelector('#notes').textContent.startsWith('coffee.csv: 4 columns')")
    page.click("#create-model")
    page.until("document.querySelector('#text').value.includes('coffee.csv') && document.querySelector('#diagnostics .ok')?.textContent.startsWith('coffee')")

    # An error is marked at its place; the correction removes it.
    good = page.run("document.querySelector('#text').value")
    def write(text):
        page.run(f"(() => {{ const text = document.querySelector('#text'); text.value = {json.dumps(text)}; text.dispatchEvent(new Event('input')); }})()")
    good = re.sub(r',\s*"early_stopping": \{[^}]*\}', "", good)  # trains until Stop
    write(good.replace('"epochs"', '"epoch"'))
    page.until("document.querySelector('#diagnostics button')?.textContent.includes('/train')")
    write(good)
    page.until("document.querySelector('#diagnostics .ok')")

    # Layers and settings by controls.
    page.click("#add-layer")
    page.until("document.querySelector('#text').value.includes('\"h1\"') && document.querySelectorAll('.layer').length === 3 && document.querySelector('#diagnostics .ok')")
    page.run("(() => { const epochs = document.querySelector('[data-path=\"train.epochs\"]'); epochs.value = 3000000; epochs.dispatchEvent(new Event('change')); })()")
    page.until("/\"epochs\": 3000000/.test(document.querySelector('#text').value) && document.querySelector('#diagnostics .ok')")
    def choose(label, value):
        page.run(f"(() => {{ const list = document.querySelector('[data-path=\"{label}\"], [aria-label=\"{label}\"]'); list.value = '{value}'; list.dispatchEvent(new Event('change')); }})()")
    choose("transform 1 of minutes", "minmax")
    page.until("/\"minutes\": \\[\"minmax\"\\]/.test(document.querySelector('#text').value) && document.querySelector('#diagnostics .ok')")
    choose("data.source.range", "1500")
    page.until("/\"range\": \\[0, 1500\\]/.test(document.querySelector('#text').value) && document.querySelector('#diagnostics .ok')")
    pictures(page, folder, "model")

    # Train, pause, step, resume, stop.
    page.click("#train")
    page.until("document.querySelector('#state').textContent === 'Running'")
    page.until("document.querySelectorAll('#pictures img').length > 1 && [...document.querySelectorAll('#pictures img')].some((one) => one.naturalWidth > 0)")
    page.click("#pause")
    page.until("document.querySelector('#state').textContent === 'Paused'")
    before = page.run("Number(document.querySelector('#steps').textContent.replace(/,/g, ''))")
    page.click("#step")
    page.until(f"Number(document.querySelector('#steps').textContent.replace(/,/g, '')) === {before + 1}")
    page.until("document.querySelector('#state').textContent === 'Paused'")
    page.click("#pause")
    page.until("document.querySelector('#state').textContent === 'Running'")

    # Change the learning rate; a reload keeps the change.
    page.click("#hyperparameters [aria-label='Learning rate ÷2']")
    page.until("/Changed: Learning rate .* after step/.test(document.querySelector('#hyperparameters').textContent)")
    pictures(page, folder, "change")
    page.call("Page.reload")
    page.until("document.documentElement?.dataset.ready === 'yes' && document.querySelector('#state').textContent === 'Running'")
    page.until("/Changed: Learning rate .* after step/.test(document.querySelector('#hyperparameters').textContent)")
    page.click("#stop")
    page.until("document.querySelector('#state').textContent === 'Interrupted'")
    page.until("/^graphrun replay runs.0001.# hyperparameters changed/s.test(document.querySelector('#command').textContent)")

    # Restart and train to the end: the printed command gives the same weights.
    write(good.replace("\n", "\n", 1))
    page.until("document.querySelector('#diagnostics .ok')")
    page.run("""(() => { const prototype = HTMLImageElement.prototype; prototype.fastDecode = prototype.decode;
        prototype.decode = async function () {
            await this.fastDecode(); await new Promise((done) => setTimeout(done, 800)); }; })()""")  # the run ends while plots load
    page.click("#train")
    page.until("document.querySelector('#state').textContent === 'Done'", 90)
    page.until("/weights [0-9a-f]{16}/.test(document.querySelector('#command').textContent)")
    page.until(same_as_final("predicted"))
    page.run("HTMLImageElement.prototype.decode = HTMLImageElement.prototype.fastDecode; 0")
    command, weights = re.match(r"(.*)\n# weights (\w+)", page.run("document.querySelector('#command').textContent")).groups()
    again = json.loads(subprocess.run(command.replace("graphrun", str(graphrun), 1).split() + ["--json", "--quiet"], cwd=work,
                                      check=True, capture_output=True, text=True).stdout)
    assert again["weights_hash"] == weights, f"{command}: {again['weights_hash']}, the page says {weights}"
    time.sleep(1.5)
    pictures(page, folder, "training")
    ends = page.run("document.querySelector('#curves-loss').getAttribute('aria-label')")
    for split in ("validation", "test"):
        shown = float(page.run(f"document.querySelector('#{split}').textContent"))
        drawn = float(re.search(rf"{split} (\S+?)(,|$)", ends).group(1))
        assert abs(drawn - shown) < 1e-4 * shown, f"the curve of {split} ends with {drawn}, the page shows {shown}"

    # An edited model has no results yet.
    page.click("#tab-model")
    write(good.replace('"units": ', '"units": 1', 1))
    page.until("document.querySelector('#state').textContent === 'Edited' && document.querySelector('#loss').textContent === '–'")
    write(good)
    page.until("document.querySelector('#state').textContent === 'Done' && document.querySelector('#loss').textContent !== '–'")
    page.click("#tab-training")

    page.run("document.querySelector('#rows').value = 'minutes,start,room\\n0,90,20\\n5,90,20\\n20,90,20\\n60,90,20'")
    page.click("#predict")
    page.until("document.querySelectorAll('#predictions tbody tr').length === 4")
    estimate = float(page.run("document.querySelector('#predictions tbody tr:nth-child(3)').lastElementChild.textContent"))
    assert abs(estimate - 43) < 4, estimate
    page.run("document.querySelector('#rows').value = 'minutes,start\\n0,90'")
    page.click("#predict")
    page.until("document.querySelector('#predict + .error').textContent.includes('room')")
    assert page.run("document.querySelector('#predictions').childElementCount") == 0, "the old answer stays"
    page.said = [line for line in page.said if not ("422" in line and line.endswith("/api/predict"))]  # the browser's own
    # Epochs without an evaluation: a mark at each evaluation, no line between them.
    drawn = page.run("""(async () => {
      const {Curves} = await import('/curves.js'), canvas = document.createElement('canvas');
      canvas.style.width = '400px';
      document.body.append(canvas);
      const context = canvas.getContext('2d'), curves = new Curves(canvas);
      const count = async (apart) => {
        const counts = {arc: 0, lineTo: 0};
        for (const name of Object.keys(counts)) context[name] = (...given) => { counts[name]++; CanvasRenderingContext2D.prototype[name].apply(context, given); };
        curves.set([{name: 'test', colour: 'red', x: [0, 5, 10], y: [3, 2, 1], apart}]);
        await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
        for (const name of Object.keys(counts)) delete context[name];
        return counts;
      };
      const line = await count(null), marks = await count([false, true, true]);
      canvas.remove();
      return JSON.stringify([line.arc, marks.arc, line.lineTo - marks.lineTo]);
    })()""")
    assert json.loads(drawn) == [0, 3, 2], drawn

    page.click("#tab-inspect")
    page.until("document.querySelector('.picture img')?.naturalWidth > 0 && document.querySelectorAll('.picture button').length > 3")
    page.click(".picture button[title='h']" if page.run("!!document.querySelector(\".picture button[title='h']\")") else ".picture button:nth-of-type(3)")
    page.until("document.querySelectorAll('#value-pictures img').length === 2 && [...document.querySelectorAll('#value-pictures img')].every((one) => one.naturalWidth > 0)")
    page.until("document.querySelector('#cursor-text').textContent.includes('for the whole run')")
    page.click("#profile")
    page.until("document.querySelectorAll('.picture button small').length > 3 && [...document.querySelectorAll('.picture button small')].filter((one) => /[nµm]s · .* · error /.test(one.textContent)).length > 1")
    page.until("document.querySelectorAll('#costs tbody tr').length > 3")
    page.click("#verify")
    page.until("document.querySelector('#verified').textContent.startsWith('Verified')", 90)
    pictures(page, folder, "inspect")

    page.click("#tab-runs")
    page.until("document.querySelectorAll('#run-table tbody tr').length === 2")
    assert page.run("document.querySelectorAll('#run-table thead th')[3].title").startswith("train."), "metrics come before settings"
    for row in (1, 2):
        page.click(f"#run-table tbody tr:nth-child({row}) input")
        page.until(f"document.querySelectorAll('#run-table tr.selected').length === {row}")
    names = page.run("[...document.querySelectorAll('#run-table tbody th')].map((one) => one.textContent).join('; ')")
    assert re.fullmatch(r"0002 \(.*Epochs \d+.*\); 0001 \(.*Epochs \d+.*\)", names), names
    heads = "document.querySelectorAll('#run-table thead th').length"
    columns = page.run(heads)
    page.click("#run-columns input[value='weights_hash']")
    page.until(f"{heads} === {columns} - 1 && !document.querySelector('#run-table').textContent.includes('Weight hash')")
    pictures(page, folder, "runs")
    page.click("#tab-training")
    page.until("document.querySelector('#legend').textContent.includes('0002 (')")
    page.click("#metrics input[value=mae]")
    page.until("document.querySelector('#curves-mae') && document.querySelectorAll('#charts figure').length === 4")
    set_value(page, "#smoothing", "0.9")
    page.until("/training [\\d.]+/.test(document.querySelector('#curves-loss').getAttribute('aria-label'))")
    pictures(page, folder, "compare")
    page.click("#tab-model")
    classes(page, folder)
    categories(page, folder)
    with_weights = page.run("(async () => (await fetch('/api/run-file?run=0002&file=weights.npz')).arrayBuffer().then((one) => one.byteLength))()")
    assert with_weights > 500, with_weights


def classes(page, folder):
    """Classifiers: surface and target of two inputs, confusion matrix, misclassified images."""
    for run, (list_of, name, wanted) in {"0003": ("example", "Circle", ("confusion", "roc")),
                                         "0004": ("models", "digits", ("confusion", "misclassified"))}.items():
        page.click("#tab-model")
        page.run(f"""(() => {{ const list = document.querySelector('#{list_of}');
            list.value = [...list.options].find((one) => one.textContent.startsWith('{name}')).value;
            list.dispatchEvent(new Event('change')); }})()""")
        page.until(f"document.querySelector('#diagnostics .ok')?.textContent.startsWith('{name.lower()}: ')")
        page.click("#train")
        page.until(f"document.querySelector('#state').textContent === 'Done' && document.querySelector('#command').textContent.includes('runs/{run}')", 90)
        for what in wanted:
            page.until(f"document.querySelector('[data-what={what}] img')?.naturalWidth > 0")
        time.sleep(1)
        if folder:
            page.run("document.querySelector('#pictures').scrollIntoView()")
        pictures(page, folder, name.lower())
        page.run("scrollTo(0, 0)")


def categories(page, folder):
    """A table with categories and gaps: names of inputs, a warning that can be closed, exports."""
    rows = "".join(f"{('Bern', 'Basel', 'Chur')[i % 3]},{7 * i % 31 if i % 9 else ''},{i % 5},{('low', 'high')[i % 2]}\n" for i in range(80))
    drop(page, "flats.csv", f"city,days,rooms,rent\n{rows}".encode())
    page.until("document.querySelector('#notes').textContent.startsWith('flats.csv')")
    page.click("#create-model")
    page.until("document.querySelector('#diagnostics .ok')?.textContent.startsWith('flats: ')")
    page.click("#train")
    page.until("document.querySelector('#state').textContent === 'Done' && document.querySelector('#command').textContent.includes('runs/0005')", 90)
    page.until("[...document.querySelectorAll('.network title')].some((one) => one.textContent)")  # after the last report
    titles = page.run("[...document.querySelectorAll('.network title')].map((one) => one.textContent).join('; ')")
    assert re.search(r"Weight from city=Basel to h\[0\]: .*Weight from days to h\[0\]", titles), titles[:500]
    assert "no maps" in page.run("document.querySelector('#network-note').textContent")
    notice = "document.querySelector('#notice')"
    assert "missing" in page.run(f"{notice}.textContent")
    pictures(page, folder, "flats")
    page.click("#notice button")
    page.click("#tab-model")
    page.run("document.querySelector('#speed').dispatchEvent(new Event('change'))")  # another event of the run
    time.sleep(0.5)
    assert page.run(f"{notice}.hidden"), "the warning is back"
    pictures(page, folder, "flats-model")
    for button, wanted in (("export-c", "flats_city"), ("export-onnx", "onnx")):
        page.run("URL.createObjectURL = (blob) => { blob.text().then((text) => { document.exported = text; }); return '#runs'; }; document.exported = '';")
        page.click(f"#{button}")
        page.until(f"document.exported.includes('{wanted}')")
    # Plots name the column, errors the model and rows of the page.
    ask = "const ask = (path, body) => fetch(path, body && {method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify(body)}).then((one) => one.text());"
    assert "rent on test" in page.run(f"(async () => {{ {ask} return ask('/api/picture.svg?what=confusion&split=test'); }})()")
    answer = page.run(f"(async () => {{ {ask} return ask('/api/predict', {{rows: 'city,days,rooms\\nBern,soon,2\\n'}}); }})()")
    assert "rows:2" in answer and "rows.csv" not in answer, answer
    page.said = [line for line in page.said if not ("422" in line and line.endswith("/api/predict"))]
    assert '"name":"flats.json"' in page.run(f"(async () => {{ {ask} return ask('/api/model'); }})()")


def main(graphrun, sources, folder=None):
    program = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if program is None:
        print(f"skipped: none of {', '.join(BROWSERS)} is installed")
        return 77
    graphrun = pathlib.Path(graphrun).resolve()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as work:  # Chromium's children end after it
        shutil.copy(pathlib.Path(sources, "models", "digits.json"), work)
        pathlib.Path(work, "data").mkdir()
        for file in pathlib.Path(sources, "models", "data").glob("digits-*"):
            shutil.copy(file, pathlib.Path(work, "data"))
        studio = subprocess.Popen([graphrun, "studio", "--no-browser"], cwd=work, stdout=subprocess.PIPE, text=True)
        page = None
        failures = []
        try:
            url = studio.stdout.readline().strip()
            page = Browser(program, f"{work}/profile")
            use(page, url, work, graphrun, folder)
            home = url.split("?")[0]
            strange = [address for address in page.asked if not address.startswith((home, "blob:", "about:"))]
            failures = [f"the console says: {line}" for line in page.said] + [f"somebody else is asked: {one}" for one in strange]
            studio.send_signal(signal.SIGINT)
            studio.wait()
            print("\n".join(failures) or f"{len(page.asked)} requests, all to the studio; nothing on the console")
            return 1 if failures else 0
        finally:
            if page:
                if not failures and page.said:  # why it has come here
                    print("\n".join(page.said))
                page.end()
            if studio.poll() is None:
                studio.kill()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
