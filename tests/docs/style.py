"""python3 style.py ROOT [--update]: words and comment openings that the house style replaces, counted by section.

Sections: each page at the top, each shelf of docs/, help texts, messages and page texts (string literals), and the
comments of each folder. tests/docs/style-budget.txt holds a count for each section that has any. Exit code 1 if a
section has more (prints each hit with its replacement) or fewer (prints the new line): counts only fall. --update
writes the lower counts and never a higher one; where a file moves, move its count by hand.
"""
import bisect
import pathlib
import re
import sys

# Pattern (a blank is any white space), replacement. Code spans, identifiers and quoted keys are not searched.
GLOSSARY = [
    (r"tells?|told|telling", "report, print, log, warn"),
    (r"beside", "next to, compared with, in addition to"),
    (r"anew|once more", "again, re-run, recompute, restart"),
    (r"(?:go|goes|going|gone|went) on", "resume, continue"),
    (r"mov(?:es?|ed|ing) (?:(?:a|the|its|no|all|these|those) )?(?:parameters?|weights?)|optimizers? mov(?:es?|ed)",
     "update; frozen parameter"),
    (r"matri(?:x|ces) of confusion|among the first (?:\d|n|k)", "confusion matrix; top-3 accuracy"),
    (r"(?<!class\s)(?<!test,\s)(?<!\),\s)scores|figures", "metrics"),
    (r"(?<!standard\s)(?<!absolute\s)deviations?", "standard deviation (std)"),
    (r"(?:a|every|each|next|last|one) look|look(?:s|ed|ing)? (?:at|into)", "check, poll, inspection"),
    (r"mistakes?|mistaken|(?:is|are|was) wrong", "error, invalid"),
    (r"mend(?:s|ed|ing)?", "fix"),
    (r"whole[\s-]step kernels?|kernels? of whole steps", "fused training-step kernel, step kernel"),
    (r"lives|lies?|stands?(?! for| alone)", "live range; is stored, is listed"),
    (r"room", "capacity, space"),
    (r"words of (?:(?:a|the|its|each|that|one|all) )?columns?", "categorical values"),
    (r"takes? the place of", "imputation; replaces"),
    (r"numbers? of (?:the|an|its) optimizers?|numbers? (?:that (?:is|are) )?set at run time",
     "hyperparameter; runtime hyperparameter"),
    (r"rows of one file|other rows", "inference input"),
    (r"dividers?|divisions? (?:of|into)|parts of (?:a |the )?(?:data|data set|table)", "split, splitter"),
    (r"locks? of (?:a|the|its) plan|plan locks?(?! 1)|locked plans?", "plan snapshot"),  # "plan lock 1": file format
    (r"(?:the|its|their|random|all|own|other|another|more|these|same|of|no|a) draws?", "random samples"),
    (r"exchanges?|packets?", "cross-block reduction, message"),
    (r"(?<!there\s)(?:is|are|was|were) (?:none|no [a-z]+)", "is not an X, has no X"),
    (r"refus(?:es?|ed|ing|als?)|declin(?:es?|ed|ing)", "reject; not supported"),
    (r"bit by bit", "bit for bit, bitwise identical"),
    (r"the other way", "reversed, vice versa"),
    (r"surveys?|(?<!same\s)origins?|strays?|(?:off|on) (?:the|a|its) curve",
     "CSV type inference, provenance, split mismatch, log transform"),
    (r"(?:step|at (?:a|the|each|every)) boundar(?:y|ies)|boundar(?:y|ies) of (?:a|the|each) step", "end of step"),
    (r"remade|nowhere|held", "recomputed, unplaced, live"),
    (r"once texts?|row texts?|told names?", "per-step code, per-row code, metric names"),
    (r"how (?:it|they|(?:a|the) (?:model|network)) do(?:es)?", "evaluation"),
]
BEFORE, AFTER = r"\b(?<![\w/.\\:<>#-])(?!(?<=['\"])\w+\\?['\"])", r"(?![\w/(<>-]|\.\w|::)"
WORDS = re.compile(BEFORE + "(?:" + "|".join(f"({p})" for p, _ in GLOSSARY).replace(" ", r"\s+") + ")" + AFTER)
OPENING = re.compile(r"\W*(of|by|what|whose|which|where|that)\b")

STRING = r"\"(?:\\.|[^\"\\\n])*\""
CPP = re.compile(r"(?P<raw>R\"(\w*)\(.*?\)\2\")|(?P<string>" + STRING + r"(?:\s*" + STRING + r")*)|'(?:\\.|[^'\\\n])'"
                 r"|(?P<comment>//[^\n]*(?:\n[ \t]*//[^\n]*)*|/\*.*?\*/)", re.S)
JS = re.compile(r"(?P<string>\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`)"
                r"|(?P<comment>(?<!:)//[^\n]*(?:\n[ \t]*//[^\n]*)*|/\*.*?\*/)", re.S)
PYTHON = re.compile(r"(?P<comment>(?<![=(\[,] )(?<![=(\[,])\"\"\".*?\"\"\"|(?:(?<=\s)|^)#[^\n]*(?:\n[ \t]*#[^\n]*)*)"
                    r"|(?P<string>\"\"\".*?\"\"\"|'''.*?'''|" + STRING + r"|'(?:\\.|[^'\\\n])*')", re.S | re.M)
SHELL = re.compile(r"(?P<comment>^[ \t]*#[^\n]*(?:\n[ \t]*#[^\n]*)*|(?<=  )# [^\n]*)", re.M)
LANGUAGES = {**dict.fromkeys((".cpp", ".h", ".cu", ".cuh", ".c"), CPP), **dict.fromkeys((".js", ".css"), JS),
             ".py": PYTHON, **dict.fromkeys((".sh", ".awk", ".cmake", ""), SHELL)}
HELP = ("src/cli/command_line/", "src/cli/verbs/", "src/graph/frontend/library/")


def blanked(match):
    return re.sub(r"[^\n]", " ", match.group())


def page_text(text):
    """Prose of a Markdown page: of a block only the comments, without code spans and link targets."""
    no_comments = re.compile(r"^(?!.*(?:#|//) ).*$|^.*?(?=(?:#|//) )", re.M)
    text = re.sub(r"^ *```.*?^ *```", lambda block: no_comments.sub(blanked, block.group()), text, flags=re.M | re.S)
    return re.sub(r"`[^`]*`|(?<=\])\([^)\s]*\)", blanked, text)


def pieces(root):
    """(section, path, offset, prose, whether it is a comment, whole text) of all prose below root."""
    tops = ("docs", "src", "include", "tests", "python", "bench", "scripts")
    for file in sorted([*root.glob("*.md"), *(file for top in tops for file in (root / top).rglob("*"))]):
        path = file.relative_to(root).as_posix()
        top, folder = path.split("/")[0], "/".join(path.split("/")[:-1][:2])
        page = path.startswith("src/studio/page/")
        markdown = file.suffix == ".md" and top in (path, "docs")
        language = LANGUAGES.get("" if file.name == "CMakeLists.txt" else file.suffix)
        if path == "tests/docs/style.py" or "__pycache__" in path or not file.is_file():
            continue
        if not markdown and not (page and file.suffix == ".html") and (language is None or top == "docs"):
            continue
        text = file.read_text(encoding="utf-8")
        if re.match(r"#!.*python", text):
            language = PYTHON
        if markdown:
            yield "docs/internals" if folder == "docs/notes" else folder or path, path, 0, page_text(text), False, text
        elif file.suffix == ".html":
            prose = re.sub(r"<[^>]*?(?=(?:title|placeholder|aria-label)=|>)", blanked, text)
            yield "page", path, 0, re.sub(r"[<>]", " ", prose), False, text
        else:
            for match in language.finditer(text):
                where, start = match.lastgroup, match.start()
                if where == "comment":
                    prose = re.sub(r"^\s*(?://+|#+|\*+)|/\*+|^\"\"\"|`[^`\n]*`", blanked, match.group(), flags=re.M)
                    section = "page comments" if page else folder if top in ("src", "tests") else top
                    yield section, path, start, prose, True, text
                elif top in ("src", "python") and " " in match.group() and not (
                        where == "raw" and path.startswith(("src/executors/", "src/kernels/", "src/export/"))):
                    section = "page" if page else "help" if path.startswith(HELP) else "messages"
                    prose = re.sub(r"\\[nt]|\"\s*\n\s*\"", blanked, match.group())
                    yield section, path, start, prose, False, text


def hits_by_section(root):
    hits = {}
    for section, path, start, prose, comment, text in pieces(root):
        found = [(m.start(), m.group(), GLOSSARY[m.lastindex - 1][1]) for m in WORDS.finditer(prose.lower())]
        starts = [0] if comment else []
        next_line = re.compile(r"(?://|#)[^\n]*\n([ \t]*)(?://|#)").match(text, start)
        if comment and next_line and len(next_line[1]) != start - text.rfind("\n", 0, start) - 1:
            starts.append(next_line.end() - start)  # a comment behind code, and another comment below it
        for opening in filter(None, (OPENING.match(prose.lower(), at) for at in starts)):
            found.append((opening.start(1), f"{opening.group(1)} ...", "begin the comment with the noun or the verb"))
        hits.setdefault(section, []).extend(
            (path, text.count("\n", 0, start + at) + 1, " ".join(word.split()), better) for at, word, better in found)
    return hits


def main():
    root, update = pathlib.Path(sys.argv[1]).resolve(), "--update" in sys.argv[2:]
    file = root / "tests/docs/style-budget.txt"
    budgets = {}
    if file.exists():
        lines = re.findall(r"^([^#\n]+): (\d+)$", file.read_text(encoding="utf-8"), flags=re.M)
        budgets = {section: int(count) for section, count in lines}
    hits = hits_by_section(root)
    counts = {section: len(hits.get(section, [])) for section in sorted({*hits, *budgets})}
    if len(counts) < 20:
        sys.exit(f"only {len(counts)} sections of prose below {root}")
    if update:  # sections that are new: folders that moved
        may_add = not budgets or sum(counts.values()) <= sum(budgets.values())
        budgets = {section: min(len(hits[section]), budgets.get(section, len(hits[section]) if may_add else 0))
                   for section in counts if section in hits}
        text = "# section: hits of tests/docs/style.py, which only fall. `style.py ROOT --update` writes lower ones.\n"
        file.write_text(text + "".join(f"{section}: {count}\n" for section, count in budgets.items()), encoding="utf-8")
    failed = False
    for section, count in counts.items():
        allowed = budgets.get(section, 0)
        if count > allowed:  # files that were edited last come last
            for path, line, word, better in sorted(hits[section], key=lambda hit: (root / hit[0]).stat().st_mtime):
                print(f"{path}:{line}: '{word}': {better}")
            print(f"{section}: {count} hits, but tests/docs/style-budget.txt allows {allowed}: reword what was added")
        elif count < allowed:
            print(f"tests/docs/style-budget.txt: lower the line of '{section}' from {allowed}:\n{section}: {count}")
        failed = failed or count != allowed
    print(f"{sum(counts.values())} hits in {len(counts)} sections")
    sys.exit(failed)


main()
