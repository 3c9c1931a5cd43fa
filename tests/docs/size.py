"""python3 size.py ROOT [--update]: no folder has more lines of code than tests/size.txt allows.

Counted: C++ (.cpp .h .cu .cuh) of include/ and each folder of src/, Python of python/, and the studio's page. Exit
code 1 if a folder is larger than its number. --update writes today's numbers and keeps the column of reasons.
"""
import pathlib
import re
import sys

CPP = (".cpp", ".h", ".cu", ".cuh")
HEADER = """# Lines of code by folder, at most: a smaller one is fine. Update: python3 tests/docs/size.py . --update
# A number rises only in the commit that adds the feature, with the name of its issue behind it.
"""


def lines_below(folder, endings):
    return sum(len(file.read_bytes().splitlines()) for file in folder.rglob("*") if file.suffix in endings)


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    counts = {f"src/{folder.name}": lines_below(folder, CPP) for folder in (root / "src").iterdir() if folder.is_dir()}
    counts |= {"include": lines_below(root / "include", CPP), "python": lines_below(root / "python", (".py",)),
               "src/studio/page": lines_below(root / "src/studio/page", (".js", ".html", ".css"))}
    if min(counts.values()) == 0:
        sys.exit("no code in " + ", ".join(folder for folder, count in counts.items() if count == 0))
    file = root / "tests/size.txt"
    rows = re.findall(r"^([\w/]+) +(\d+) *(.*)$", file.read_text(encoding="utf-8") if file.exists() else "", flags=re.M)
    allowed = {folder: int(number) for folder, number, _ in rows}
    if "--update" in sys.argv[2:]:
        reasons = {folder: reason for folder, _, reason in rows}
        text = [f"{folder:<16} {counts[folder]:>6}  {reasons.get(folder, '')}".rstrip() + "\n" for folder in sorted(counts)]
        file.write_text(HEADER + "".join(text), encoding="utf-8")
        grown = [f"{folder} +{count - allowed.get(folder, 0)}" for folder, count in counts.items()
                 if count > allowed.get(folder, 0)]
        print("larger; name the issue behind the number: " + ", ".join(grown) if grown else "no folder is larger")
        return
    failed = False
    for folder in sorted({*counts, *allowed}):
        count, limit = counts.get(folder, 0), allowed.get(folder, 0)
        if count > limit:
            print(f"{folder}: {count} lines, but tests/size.txt allows {limit}. Remove code that nothing needs. If the "
                  "commit adds a feature, raise the number and write the name of its issue behind it.")
        elif folder not in counts:
            print(f"{folder}: no such folder; remove its line from tests/size.txt")
        failed = failed or count > limit or folder not in counts
    print(f"{sum(counts.values())} lines in {len(counts)} folders")
    sys.exit(failed)


main()
