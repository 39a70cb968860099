#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that what the documents name exists: paths of the repository, functions, and links between documents."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENTS = sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("docs/**/*.md")) + sorted(ROOT.glob("tests/**/*.md")) \
    + sorted(ROOT.glob("examples/*.md")) + sorted(ROOT.glob("bench/*.md"))
SUFFIXES = r"\.(?:c|h|py|sh|md|txt|map|scd|build)"
FOLDERS = "src|tests|docs|man|roci|bench|scripts|examples"
ROOMS = ("", "src", "tests/unit", "tests", "tests/clients", "examples")
ELSEWHERE = {"verbs.h"}  # other people's files
PLACEHOLDER = "NAME"  # stands for a name of the reader's choice


def find(name, document):
    """The file or folder that a document names, or None."""
    for room in [document.parent] + [ROOT / room for room in ROOMS]:
        if (room / name).exists():
            return room / name
    if "/" not in name:
        return next((p for room in ("src", "roci", "tests", "scripts") for p in (ROOT / room).rglob(name)), None)
    return None


def missing_of(document):
    """In a table, a function belongs to the file that its row names before it."""
    text = re.sub(r"^(?: {4,}|\t).*$", "", document.read_text(), flags=re.M)  # examples are not checked
    for line in text.splitlines():
        named = None
        for code, link in re.findall(r"`([^`]+)`|\]\(([^)#:]+)\)", line):
            name = link or code
            if re.fullmatch(rf"[\w./-]+{SUFFIXES}", name) or re.fullmatch(rf"(?:{FOLDERS})/[\w./-]*", name):
                named = find(name, document)
                if not named and name not in ELSEWHERE and PLACEHOLDER not in name:
                    yield f"no file {name}"
            elif line.startswith("|") and named and named.is_file() and re.fullmatch(r"\w+\(\)", name):
                if not re.search(rf"\b{name[:-2]}\(", named.read_text()):
                    yield f"no function {name} in {named.relative_to(ROOT)}"


def main():
    wrong = [f"{d.relative_to(ROOT)}: {what}" for d in DOCUMENTS for what in missing_of(d)]
    print("\n".join(wrong) if wrong else f"{len(DOCUMENTS)} documents: what they name exists")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
