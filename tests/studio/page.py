"""python3 page.py SOURCES: the files of the studio's page have lines of at most 120 characters, and Node.js parses the
scripts. Exit code 77: Node.js is not installed.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

kWidth = 120

folder, errors = pathlib.Path(sys.argv[1], "src/studio/page"), []
files = sorted(file for file in folder.iterdir() if file.suffix in (".js", ".css", ".html"))
for file in files:
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if len(line) > kWidth:
            errors.append(f"{file}:{number}: {len(line)} characters, at most {kWidth}")
node = shutil.which("node") or shutil.which("nodejs")
if node:
    with tempfile.TemporaryDirectory() as work:
        for script in (file for file in files if file.suffix == ".js"):
            module = shutil.copy(script, pathlib.Path(work, script.stem + ".mjs"))  # as the browser loads it
            checked = subprocess.run([node, "--check", module], capture_output=True, text=True, check=False)
            if checked.returncode != 0:
                errors.append(checked.stderr)
print("\n".join(errors) or f"{len(files)} files")
if not errors and not node:
    print("skipped: Node.js is not installed")
sys.exit(1 if errors else 0 if node else 77)
