"""python3 facts.py ROOT: names, lists and counts in the documentation agree with the tree below ROOT.

links.py checks links. This checks paths, file names, identifiers, tests, flags, verbs, variables, listings of folders,
counts and limits. Exit code 1 with a line for each false statement. A reworded sentence with a count or limit counts as
false, too: change its row in check_counts().
"""
import ast
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1]).resolve()
SKIPPED = {".git", ".cache", "shared", "__pycache__"}
NUMBERS = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen".split()
PATH = re.compile(r"(?<![\w/.$-])((?:src|tests|docs|bench|include|models|scripts|examples|cmake|python)/[\w./*<>-]*[\w/*])")
FILE = r"[\w-]+\.(?:h|cpp|cu|cuh|py|json|csv|npz|npy|svg|safetensors)\b"
COMMENT = re.compile(r"(?://|^\s*[#*]|\"\"\")(?!include)(.*)")

# Paths of patterns, of downloads and of other people's folders.
NO_PATHS = {"src/executors/X", "models/mnist", "models/a.json", "models/NAME.json"}
# Names that are not ours: of other programs and libraries, of what a user makes, of mathematics.
NO_NAMES = {"math.h", "stdint.h", "cupti.h", "dlpack.h", "PAGE.md", "NAME_target", "manylinux_2_34", "_by_const",
            "_GLIBCXX_DEBUG", "to_datetime", "Timestamp", "FETCHCONTENT_SOURCE_DIR_GRAPHRUN", "Σ_k", "Σ_r", "CCTL", "test_wait"}
FOREIGN_FLAGS = {
    "pip": {"--no-deps"}, "vcpkg": {"--overlay-ports"}, "docker": {"--rm", "--user", "--network"}, "tensorboard": {"--logdir"},
    "cmake": {"--preset", "--build", "--install", "--prefix", "--target"}, "pkg-config": {"--cflags", "--libs"},
    "compute-sanitizer": {"--num-cuda-barriers"}, "GoogleTest": {"--gtest_filter", "--gtest_output"},
    "an example": {"--flag"}, "kubectl": {"--from-literal"},
    "NVRTC": {"--fmad", "--no-cache", "--ptxas-options", "--maxrregcount", "--split-compile", "--pch", "--Ofast-compile"}}

found = []


def report(path, line, message):
    found.append(f"{path}:{line}: {message}")


def skipped(path):
    return bool(SKIPPED & set(path.parts)) or path.parts[0].startswith("build") or path.parts[:2] == ("models", "mnist")


ALL = [path.relative_to(ROOT) for path in sorted(ROOT.rglob("*")) if path.is_file()]
FILES = {path.as_posix(): ROOT / path for path in ALL if not skipped(path)}
FOLDERS = {parent.as_posix() for name in FILES for parent in pathlib.PurePosixPath(name).parents} - {"."}
BASENAMES = {name.rsplit("/")[-1] for name in FILES}
TEXTS = {}
for name, file in FILES.items():
    try:
        TEXTS[name] = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        pass
PAGES = {name: text for name, text in TEXTS.items() if name.endswith(".md")}
DOCS = {name.rsplit("/")[-1]: name for name in PAGES if name.startswith("docs/") and not name.endswith("README.md")}
CODE = {name: text for name, text in TEXTS.items() if not name.endswith((".md", ".json", ".csv", "docs/facts.py"))}
WORDS = set(re.findall(r"\w+", "\n".join(CODE.values())))
WORDS |= {name.partition(".")[0] for name in BASENAMES}


def without_blocks(text):
    return re.sub(r"^ *```.*?^ *```", lambda block: "\n" * block.group().count("\n"), text, flags=re.MULTILINE | re.DOTALL)


def spans(text):
    """(line, text) of each `code span` outside of blocks."""
    for number, line in enumerate(without_blocks(text).split("\n"), 1):
        for span in re.findall(r"`([^`]+)`", line):
            yield number, span


def comments_and_pages():
    for name, text in TEXTS.items():
        if name == "tests/docs/facts.py" or name.endswith((".json", ".csv")):
            continue
        for number, line in enumerate(text.split("\n"), 1):
            if name in PAGES:
                yield name, number, line
            elif comment := COMMENT.search(line):
                yield name, number, comment.group(1)


def exists(path):
    path = re.sub(r"<\w+>", "*", path).rstrip("/>")
    return path in FILES or path in FOLDERS or "*" in path and any(pathlib.PurePosixPath(f).match(path) for f in FILES)


def check_paths():
    for name, number, line in comments_and_pages():
        for path in PATH.findall(line):
            if path.rstrip("/>") not in NO_PATHS and not exists(path):
                report(name, number, f"'{path}': no such file or folder")
        for file in re.findall(r"(?<![\w/.<*\"'-])([\w-]+\.(?:h|cpp|cu|cuh))\b", line):
            if file not in BASENAMES and file not in NO_NAMES and len(file) > 3:
                report(name, number, f"'{file}': no such file")
        for page in re.findall(r"(?<![\w/-])([\w-]+\.md)\b", line) if name not in PAGES else []:
            if page not in BASENAMES and page not in NO_NAMES:
                report(name, number, f"'{page}': no such page")
    for name, text in TEXTS.items():
        first = re.match(r"// ([\w.]+\.h):", text) if name.endswith(".h") else None
        if first and first.group(1) != name.rsplit("/")[-1]:
            report(name, 1, f"begins with the name of {first.group(1)}")


def check_identifiers():
    own = r"k[A-Z]\w+|[A-Z]\w*[a-z]\w*|gr_\w+|\w+(?=\(\))|GRAPHRUN_\w+|[A-Za-z]\w*_\w+"
    for name, text in PAGES.items():
        for number, span in spans(text):
            plain = re.sub(FILE, "", PATH.sub("", span)).replace("-D", " ")
            for word in re.findall(rf"(?<![\w-])(?:{own})", plain):
                if word not in WORDS and word not in NO_NAMES and not word.startswith(("test_", "NET_")):
                    report(name, number, f"'{word}' occurs in no source")
            for suite, test in re.findall(r"^([A-Z]\w+)\.([A-Z]\w*)$", span):
                if suite not in NO_NAMES and not re.search(rf"\bTEST(?:_F|_P)?\({suite},\s*{test}", TESTS):
                    report(name, number, f"there is no test {suite}.{test}")


TESTS = "\n".join(text for name, text in TEXTS.items() if name.startswith("tests/"))
FLAGS = re.findall(r'^    \{"(--[\w-]+)"', TEXTS["src/cli/command_line/flags.cpp"], flags=re.MULTILINE)
VERBS = re.findall(r'^const Verb \w+ = \{\s*"([\w-]+)",\s*"([\w-]*)"',
                   "\n".join(t for n, t in TEXTS.items() if n.startswith("src/cli/")), flags=re.MULTILINE)


def check_flags():
    own = set(FLAGS)
    scripts = "\n".join(t for n, t in CODE.items() if n.startswith(("scripts/", "bench/", "tests/", "examples/")))
    foreign = set().union(*FOREIGN_FLAGS.values())
    handbook = "\n".join(t for n, t in PAGES.items() if n == "README.md" or n.startswith("docs/") and "/notes/" not in n)
    for flag in sorted(own):
        if not re.search(rf"{flag}(?![\w-])", handbook):
            report("src/cli/command_line/flags.cpp", 1, f"{flag} is in no page")
    for name, text in PAGES.items():
        for number, line in enumerate(text.split("\n"), 1):
            for flag in re.findall(r"(?<![\w-])(--[A-Za-z][\w-]*)", line):
                if flag not in own and flag not in foreign and not re.search(rf"{flag}(?![\w-])", scripts):
                    report(name, number, f"{flag} is a flag neither of graphrun nor of a script")


def check_verbs():
    names = {name for verb in VERBS for name in verb if name}
    pages = "\n".join(PAGES.values())
    for verb, _ in VERBS:
        if not re.search(rf"graphrun {verb}\b", pages):
            report("src/cli/verbs", 1, f"no page shows `graphrun {verb}`")
    for name, text in PAGES.items():
        prose = without_blocks(text).split("\n")
        for number, line in enumerate(text.split("\n"), 1):
            before = "`" if prose[number - 1] else r"(?:^ *|\$ |\(|; )"
            for word in re.findall(rf"{before}graphrun ([a-z][\w-]*)(?= |`|$)", line):
                if word not in names:
                    report(name, number, f"`graphrun {word}`: no such verb")


def check_variables():
    page = PAGES["docs/reference/command-line.md"]
    for variable in set(re.findall(r'"(GRAPHRUN_[A-Z_]+)"', TEXTS["src/cli/command_line/flags.cpp"])):
        if f"`{variable}`" not in page:
            report("docs/reference/command-line.md", 1, f"{variable} is missing")
    handbook = "\n".join(PAGES.values())
    for name, text in TEXTS.items():
        for variable in re.findall(r'getenv\("(GRAPHRUN_\w+)"', text) if name.startswith("src/") else []:
            if variable not in handbook:
                report(name, 1, f"{variable} is in no page")


def listing(page):
    """Path and description of each row of the block below "The tree"."""
    block = PAGES[page].split("## The tree")[1].split("```")[1]
    rows, parent = [], ""
    for line in filter(str.strip, block.split("\n")):
        if line.startswith(" " * 4):
            rows[-1][1] += " " + line.strip()
            continue
        names, _, description = line.strip().partition("  ")
        for name in names.split(", "):
            path = parent + name if line.startswith(" ") else name
            rows.append([path.rstrip("/"), description])
        if not line.startswith(" "):
            parent = names
    return rows


def check_tree():
    rows = listing("docs/internals/architecture.md")
    named = {path for path, _ in rows}
    for path in sorted(named):
        if not exists(path):
            report("docs/internals/architecture.md", 1, f"The tree: '{path}' does not exist")
    for folder in sorted(FOLDERS):
        top, _, rest = folder.partition("/")
        if folder.startswith(".") or rest and top != "src" or folder == "include":
            continue
        parent, _, leaf = folder.rpartition("/")
        inside = any(path == parent and re.search(rf"\b{leaf}\b", text) for path, text in rows)
        if folder not in named and not inside and not any(path.startswith(folder + "/") for path in named):
            report("docs/internals/architecture.md", 1, f"The tree: '{folder}' is missing")
    scripts = dict(rows).get("scripts", "")
    for name in FILES:
        if re.fullmatch(r"scripts/[^/.]+", name) and not re.search(rf"(?<![\w-]){name[8:]}(?![\w-])", scripts):
            report("docs/internals/architecture.md", 1, f"The tree: '{name}' is missing")


def constant(pattern, path):
    match = re.search(pattern, TEXTS[path])
    return int(match.group(1).replace("'", "")) if match else None


def model_names():
    return {name[7:-5] for name in FILES if re.fullmatch(r"models/\w+\.json", name)}


def tile_names():
    return re.findall(r'"(\w+)"', re.search(r"kTiles\[\] = \{(.*?)\}", TEXTS["src/session/compiling/tilings.cpp"]).group(1))


def check_counts():
    models, tiles = len(model_names()), len(tile_names())
    functions = len(re.findall(r"^GRAPHRUN_C_\d+ ", TEXTS["tests/c_api/abi.txt"], flags=re.MULTILINE))
    planner, devices = "src/executors/cuda_planner/", "src/executors/cuda/"
    target, elements = "src/types/target.cpp", "src/executors/cpu/element_runner.h"
    # page, the sentence with the number as a group, the number in the tree
    rows = [
        ("README.md", r"(\w+) example models", models),
        ("tutorial.md", r"\(\.\./\.\./models\): (\w+) models", models),
        ("memory.md", r"of the (\w+) models of `models/`", models),
        ("c-api.md", r"(\w+) functions over three opaque handles", functions),
        ("architecture.md", r"where `graphrun/c\.h` has (\w+)", functions),
        ("cuda.md", r"There are (\w+) kinds of tilings", tiles),
        ("cuda.md", r"at most (\d+) entries and 64 MiB", constant(r"kEntries = (\d+)", devices + "kernel_cache.h")),
        ("cuda.md", r"up to (\d+)\s+can be loaded at a time", constant(r"kLoopSlots = (\d+)", "src/kernels/cuda/loop.h")),
        ("cuda.md", r"take at most (\d+) multiplications", constant(r"kMaxProducts = (\d+)", planner + "cost/thread_costs.cpp")),
        ("cuda.md", r"summed to at most (\d+) numbers", constant(r"kMaxSums = (\d+)", planner + "cost/thread_costs.cpp")),
        ("cuda.md", r"multiply more than ([\d,]+) times", constant(r"kLongProducts = (\d+)", planner + "cost/thread_costs.cpp")),
        ("cuda.md", r"takes at most (\d+) KiB of shared", constant(r"kMaxShared = (\d+) \* 1024", planner + "cost/tile_costs.cpp")),
        ("regions.md", r"one for every (\d+) units of work", constant(r"\.partition_work = (\d+)", target)),
        ("regions.md", r"There are at most (\d+), each", constant(r"\.max_partitions = (\d+)", target)),
        ("regions.md", r"`tile_bytes` \((\d+) KiB\)", constant(r"\.tile_bytes = (\d+) \* kKiB", target)),
        ("regions.md", r"a host fuses steps from ([\d,]+) elements", constant(r"kHostElements\{(\d+)", target)),
        ("regions.md", r"runs them ([\d,]+) elements at a time", constant(r"kElements = (\d+)", elements)),
        ("security.md", r"(\d+) connections, 16 KiB of head", constant(r"connections = (\d+)", "src/studio/server.h")),
        ("checkpoints.md", r"Training stops within (\d+) ms", constant(r"kSeconds = 0\.0(\d+)", "src/session/loaded_model.cpp")),
    ]
    for page, pattern, expected in rows:
        page = page if page in PAGES else DOCS[page]
        match = re.search(pattern.replace(" ", r"\s+"), PAGES[page])
        if expected is None:
            report(page, 1, f"the number of '{pattern}' is not where it was in the tree")
        elif not match:
            report(page, 1, f"no sentence '{pattern}'")
        else:
            said = match.group(1).lower().replace(",", "")
            if str(expected) != (str(NUMBERS.index(said)) if said in NUMBERS else said):
                line = PAGES[page].count("\n", 0, match.start()) + 1
                report(page, line, f"'{match.group()}', but it is {expected}")
    readme, measured = PAGES["README.md"], PAGES["docs/internals/performance.md"]
    for figure in re.findall(r"([\d.,]*\d) ?µs", readme):
        if not re.search(rf"(?<![\d.,]){re.escape(figure)}(?![\d]|[.,]\d)", measured):
            report("README.md", 1, f"{figure} µs is not in docs/internals/performance.md")
    times = re.findall(r"^\| (\w+), .*? \| ([\d.,]+) µs \| ([\d.,]+) µs \| ([\d.,]+) µs \|$", readme, flags=re.MULTILINE)
    for name, ours, jax, torch in times:
        if not re.search(rf"{name}\s+{re.escape(ours)}\s+and\s+{re.escape(jax)},\s+{re.escape(torch)}(?![\d])", measured):
            report("README.md", 1, f"{name}: '{ours} and {jax}, {torch}' is not in docs/internals/performance.md")
    if not times:
        report("README.md", 1, "no table of times")


def check_lists():
    table = PAGES["docs/reference/ops.md"].split("## Optimizers")[1].split("\n## ")[0]
    optimizers = re.findall(r"^\| `(\w+)` \|", table, flags=re.MULTILINE)
    said = re.search(r"\*\*Optimizers\.\*\* (.*?), with", PAGES["docs/README.md"], flags=re.DOTALL).group(1)
    if set(re.split(r",? and |,\s+", said)) != set(optimizers):
        report("docs/README.md", 1, f"Optimizers: {said}; docs/reference/ops.md has {', '.join(optimizers)}")
    described = set(re.findall(r"^\| `(\w+)` \|", PAGES["models/README.md"], flags=re.MULTILINE))
    if described != model_names():
        report("models/README.md", 1, f"the table and the folder differ: {', '.join(sorted(described ^ model_names()))}")
    for page in ("README.md", "docs/README.md"):
        missing = re.search(r"\*\*Not supported yet\*\*: (.*)", PAGES[page]).group(1).strip()
        if missing.lower() != PAGES["docs/internals/architecture.md"].split("## Not there yet")[1].strip().lower():
            report(page, 1, "'Not supported yet' differs from 'Not there yet' of docs/internals/architecture.md")
    tiling = re.search(r'"--tiling".*?\[\]', TEXTS["src/cli/command_line/flags.cpp"], flags=re.DOTALL).group()
    for tile in tile_names():
        if tile not in tiling:
            report("src/cli/command_line/flags.cpp", 1, f"--tiling: '{tile}' is missing")
    for name in PAGES:
        notes = PAGES["docs/internals/performance.md"].split("## Notes")[1]
        if name.startswith("docs/internals/notes/") and f"({name[15:]})" not in notes:
            report("docs/internals/performance.md", 1, f"Notes: '{name}' is missing")
    reached, queue = {"README.md"}, ["README.md"]
    while queue:
        page = queue.pop()
        for target in re.findall(r"\]\(([^)#\s]+\.md)", PAGES[page]):
            linked = (ROOT / page).parent.joinpath(target).resolve()
            linked = linked.relative_to(ROOT).as_posix() if linked.is_relative_to(ROOT) else ""
            if linked in PAGES and linked not in reached:
                reached.add(linked)
                queue.append(linked)
    for name in sorted(n for n in PAGES if n.startswith("docs/") and n not in reached):
        report(name, 1, "README.md leads here by no links")


def check_page():
    """The explanations of settings and metrics on the studio's page are those of the reference."""
    page = TEXTS["src/studio/page/common.js"]
    reference = "\n".join(PAGES[f"docs/reference/{name}.md"] for name in ("ops", "model-format", "data"))
    reference = " ".join(re.sub(r'[`"]', "", reference).lower().split())
    tables = re.findall(r"^const k(?:Hints|Metrics) = \{\n(.*?)^\};", page, flags=re.MULTILINE | re.DOTALL)
    texts = re.findall(r'(?<=: )"([^"]+)"', "".join(tables))
    for text in texts:
        if text.lower() not in reference and text != "Value that training minimizes":
            report("src/studio/page/common.js", 1, f"'{text}' is not in the reference")
    if len(texts) < 30:
        report("src/studio/page/common.js", 1, f"only {len(texts)} explanations of settings and metrics")


def check_apis():
    """The reference pages name every public class, method and attribute of Python, and every header and class of C++."""
    page = PAGES["docs/reference/python.md"]
    public = ast.literal_eval(re.search(r"__all__ = (\[.*?\])", TEXTS["python/graphrun/__init__.py"]).group(1))
    sources = [ast.parse(TEXTS[f"python/graphrun/_{name}.py"]) for name in ("library", "model", "graph", "session")]
    public += ["GraphClassifier", "GraphRegressor"]
    sources.append(ast.parse(TEXTS["python/graphrun/sklearn.py"]))
    definitions = {node.name: node for tree in sources for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    definitions["GraphRegressor"].body += definitions["_GraphEstimator"].body
    for name in public:
        members = [getattr(one, "name", None) or one.target.id for one in getattr(definitions[name], "body", [])
                   if isinstance(one, (ast.FunctionDef, ast.AnnAssign))] if isinstance(definitions[name], ast.ClassDef) else []
        for word in [name, *(one for one in members if not one.startswith("_"))]:
            if not re.search(rf"`(?:[^`\n]*[^\w`])?{word}\b", page):
                report("docs/reference/python.md", 1, f"{name}: '{word}' is missing")
    page = PAGES["docs/reference/cpp.md"]
    for name, text in TEXTS.items():
        if not re.fullmatch(r"include/graphrun/\w+\.h", name):
            continue
        for word in [f"[{name[17:]}]", *(f"`{one}`" for one in re.findall(r"^class (?:GRAPHRUN_API )?(\w+) [:{]", text, flags=re.MULTILINE))]:
            if word not in page:
                report("docs/reference/cpp.md", 1, f"{word} of {name} is missing")


def check_layers():
    included = "\n".join(t for n, t in TEXTS.items() if n.startswith(("src/", "include/")))
    for number, line in enumerate(TEXTS["tests/layering/layers.txt"].split("\n"), 1):
        key = line.partition(":")[0]
        if line.startswith("<") and key != "<none" and f"#include {key}" not in included:
            report("tests/layering/layers.txt", number, f"nothing includes {key}")
        elif re.match(r"(?:src|include)/", line) and "*" not in key and not any(n.startswith(key) for n in FILES):
            report("tests/layering/layers.txt", number, f"'{key}' does not exist")


def main():
    if len(PAGES) < 10 or len(FLAGS) < 50 or len(VERBS) < 10:
        sys.exit(f"only {len(PAGES)} pages, {len(FLAGS)} flags, {len(VERBS)} verbs below {ROOT}")
    for check in (check_paths, check_identifiers, check_flags, check_verbs, check_variables, check_tree, check_counts, check_lists,
                  check_page, check_apis, check_layers):
        check()
    print("\n".join(found) or f"{len(PAGES)} pages agree with the tree")
    sys.exit(1 if found else 0)


main()
