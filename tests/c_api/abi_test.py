"""The binary interface of graphrun/c.h beside its baseline, abi.txt: exported symbols with their versions, prototypes,
layouts of structs, values of enumerators; with --abidiff beside abi.xml, by abidiff of abigail-tools. What the
baseline has stays; what is added is written into it in the same commit (abi.xml needs abigail-tools).

abi_test.py LIBRARY SOURCE CC CXX [--abidiff] [--write]. Exit code 77: there is no abidiff.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

library, source, cc, cxx = sys.argv[1:5]
header = pathlib.Path(source, "include/graphrun/c.h")
baseline = pathlib.Path(source, "tests/c_api/abi.txt")
dump = pathlib.Path(source, "tests/c_api/abi.xml")  # by abidw
text = re.sub(r"/\*.*?\*/", " ", header.read_text(), flags=re.DOTALL)


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def one_line(words):
    return re.sub(r"\s+", " ", words).strip()


def symbols():
    """A function that the header has and the library does not is an error, too."""
    listed = run("nm", "-D", "--defined-only", "--with-symbol-versions", library)
    found = dict(re.findall(r"\bT (gr_\w+)@@?(\w+)", listed))
    declared = {re.search(r"(gr_\w+)\s*\(", prototype).group(1): prototype for prototype in prototypes()}
    if set(found) != set(declared):
        sys.exit(f"exported, and not in c.h: {sorted(set(found) - set(declared))}; "
                 f"in c.h, and not exported: {sorted(set(declared) - set(found))}")
    return [f"{found[name]} {declared[name]}" for name in sorted(found)]


def prototypes():
    return [one_line(words) for words in re.findall(r"^GR_API\s+([^;]+);", text, flags=re.MULTILINE)]


def layouts(folder):
    """What a C program says of them."""
    lines = []
    for name, body in re.findall(r"typedef struct (gr_\w+) \{(.*?)\} \1;", text, flags=re.DOTALL):
        lines.append(f'printf("struct {name} %zu bytes\\n", sizeof({name}));')
        for declaration in filter(None, map(one_line, body.split(";"))):
            pointer = re.match(r"[^(]*\(\*(\w+)\)", declaration)
            fields = [pointer.group(1)] if pointer else re.findall(r"(\w+)(?:\[\w+\])?(?:,|$)", declaration)
            for field in fields:
                lines.append(f'printf("  {field} at %zu, %zu bytes\\n", offsetof({name}, {field}), '
                             f"sizeof((({name}*)0)->{field}));")
    for name, body in re.findall(r"typedef enum (gr_\w+) \{(.*?)\} \1;", text, flags=re.DOTALL):
        lines.append(f'printf("enum {name} %zu bytes\\n", sizeof({name}));')
        lines += [f'printf("  {word} = %d\\n", {word});' for word in re.findall(r"(GR_\w+)\s*=", body)]
    lines += [f'printf("{word} %d\\n", {word});' for word in re.findall(r"#define (GR_M\w+) ", text)]
    program = folder / "layouts.c"
    program.write_text("#include <graphrun/c.h>\n#include <stdio.h>\nint main(void) {\n" + "\n".join(lines) +
                       "\nreturn 0;\n}\n")
    flags = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{source}/include"]
    run(cc, "-std=c99", *flags, str(program), "-o", str(folder / "layouts"))
    as_cpp = folder / "layouts.cpp"
    as_cpp.write_text(program.read_text())
    run(cxx, "-std=c++11", *flags, str(as_cpp), "-o", str(folder / "layouts_cpp"))
    given = run(str(folder / "layouts"))
    if given != run(str(folder / "layouts_cpp")):
        sys.exit("C and C++ lay the structs of c.h out differently")
    return given.splitlines()


def grows(line):
    """Whether a line of the baseline is the size of a struct that says its own: fields are added at its end."""
    struct = re.match(r"struct (gr_\w+) (\d+) bytes", line)
    return struct and any(re.match(rf"struct {struct.group(1)} (\d+) bytes", other) and
                          before[before.index(line) + 1].startswith("  struct_size at 0,") and
                          int(other.split()[2]) > int(struct.group(2)) for other in now)


def abidiff(folder):
    """Types behind pointers too: of a library of c.h's functions with empty bodies,
    whose debug information has what the header says and nothing else."""
    bodies = "".join(f"{words} {{{'' if words.startswith('void ') and not words.startswith('void*') else ' return 0; '}}}\n"
                     for words in prototypes())
    (folder / "empty.c").write_text("#include <graphrun/c.h>\n" + bodies)
    run(cc, "-std=c99", "-g", "-O0", "-w", "-fPIC", "-shared", f"-I{source}/include",
        f"-ffile-prefix-map={folder}=.", f"-ffile-prefix-map={pathlib.Path(source).resolve()}=.", f"-ffile-prefix-map={source}=.",
        str(folder / "empty.c"), "-o", str(folder / "libempty.so"))
    grown = [line.split()[1] for line in before if line not in now and grows(line)]  # and no others: all in them is excused
    (folder / "grown.abignore").write_text("".join(
        f"[suppress_type]\nname = {name}\nhas_data_member_inserted_at = end\n\n" for name in grown))
    done = subprocess.run(["abidiff", "--no-added-syms", "--suppressions", folder / "grown.abignore", dump,
                           folder / "libempty.so"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"abidiff, from {dump.name} to this header:\n{done.stdout}{done.stderr}")
    if "--write" in sys.argv:
        run("abidw", "--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--out-file", dump, folder / "libempty.so")
    return f"abidiff finds {dump.name} in it"


abigail = shutil.which("abidiff") is not None
if "--abidiff" in sys.argv and not abigail:
    print("skipped: abidiff is not installed (Debian's abigail-tools)")
    sys.exit(77)
if len(prototypes()) > 50:
    sys.exit(f"{len(prototypes())} functions: c.h is to have 50 at most")
with tempfile.TemporaryDirectory() as temporary:
    now = symbols() + layouts(pathlib.Path(temporary))
    before = baseline.read_text().splitlines()
    lost, added = [line for line in before if line not in now], [line for line in now if line not in before]
    lost = [line for line in lost if not grows(line)]
    if lost:
        sys.exit("programs that were built before break; lost or changed:\n  " + "\n  ".join(lost + ["now:"] + added))
    if "--abidiff" in sys.argv or "--write" in sys.argv and abigail:
        print(abidiff(pathlib.Path(temporary)))
if "--write" in sys.argv:
    baseline.write_text("\n".join(now) + "\n")
elif before != now:
    sys.exit("added, and not in abi.txt yet (abi_test.py --write):\n  " + "\n  ".join(added))
print(f"{len(prototypes())} functions as in abi.txt; the header is C99 and C++")
