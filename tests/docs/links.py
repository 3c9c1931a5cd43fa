"""python3 links.py ROOT: every relative link of the Markdown pages below ROOT leads to a file, and to a heading of it.

facts.py checks what pages say of the tree. Exit code 1 if a link leads nowhere.
"""
import pathlib
import re
import sys

SKIPPED = {"build", ".git", "shared"}


def text_of(page):
    """Without blocks of code."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors(page):
    """As GitHub makes them: lower case, no punctuation, hyphens for spaces."""
    headings = re.findall(r"^#+ (.*)$", text_of(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def problems(root, page):
    text = text_of(page)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists():
            yield f"{target}: no such file"
        elif anchor and anchor not in anchors(file):
            yield f"{target}: no such heading"


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    pages = [page for page in sorted(root.rglob("*.md")) if not SKIPPED & set(page.relative_to(root).parts)]
    found = [f"{page.relative_to(root)}: {problem}" for page in pages for problem in problems(root, page)]
    print("\n".join(found) or f"{len(pages)} pages, every link leads somewhere")
    if len(pages) < 10:
        sys.exit(f"only {len(pages)} pages below {root}")
    sys.exit(1 if found else 0)


main()
