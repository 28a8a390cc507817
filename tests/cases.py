#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Maps cases from the field (tests/cases.toml) to the tests that carry their ids, and keeps docs/cases.md.

Without arguments it writes the table; --check compares it, prints what has no test, and ends with the closing line of a suite.
"""
import os
import re
import subprocess
import sys
import tomllib

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TABLE = "docs/cases.md"
IDS = re.compile(r"case_(\d{3})((?:/\d{3})*)")
TEST_CASE = re.compile(r'TEST_CASE(?:_METHOD)?\(\s*(?:\w+\s*,\s*)?((?:"[^"\n]*"\s*)+)(?:,\s*"([^"]*)")?')
# Folder -> suite; tags say more where a folder serves several.
SUITES = {"tests/native/verbs": "verbs", "tests/native/softdev": "softdev", "tests/native/tools.sh": "tools",
          "tests/native/capture": "capture", "tests/model": "twin", "tests/vm": "vm-driver"}
TAGS = {"[loss]": "loss", "[capture]": "capture"}


def ids_in(text):
    for match in IDS.finditer(text):
        yield match[1]
        yield from match[2].split("/")[1:]


def suite_of(path, tags=""):
    for tag, suite in TAGS.items():
        if tag in tags:
            return suite
    for prefix, suite in SUITES.items():
        if path.startswith(prefix):
            return suite
    return path.split("/")[1]


def plain(name):
    """The test's name without the ids that it begins with."""
    return re.sub(r"^(?:case_\d{3}(?:/\d{3})*[,:]?\s*)+", "", name).strip() or name


def scan_cpp(path, text):
    """Ids in a test's name, tags or body, or in the comment right above it."""
    tests = [(m.start(), "".join(re.findall(r'"([^"]*)"', m[1])), m[2] or "") for m in TEST_CASE.finditer(text)]
    for i, (start, name, tags) in enumerate(tests):
        above = re.search(r"(?:^[ \t]*//[^\n]*\n)+\Z", text[:start], re.M)
        end = tests[i + 1][0] if i + 1 < len(tests) else len(text)
        body = re.sub(r"(?:^[ \t]*//[^\n]*\n)+\Z", "", text[start:end], flags=re.M)
        for case in ids_in((above[0] if above else "") + body):
            yield case, suite_of(path, tags), plain(name)


def scan_script(path, text):
    """One line each: the string or the words that the id begins, or the run that it is a remark on."""
    for line in text.splitlines():
        for match in IDS.finditer(line):
            run = re.match(r'\s*pair "?([^" ]+)', line)
            rest = re.split(r'["\']', line[match.start():])[0]
            name = run[1] if run else plain(rest)
            for case in ids_in(match[0]):
                yield case, suite_of(path), name.strip(" #:")


def scan():
    listing = subprocess.run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard", "tests"], capture_output=True, text=True,
                             check=True).stdout.split("\n")
    found = {}
    for path in sorted(listing):
        script = path.endswith((".py", ".sh"))
        if not (script or path.endswith((".cpp", ".c"))) or path == "tests/cases.py":
            continue
        with open(os.path.join(ROOT, path), errors="replace") as file:
            text = file.read()
        for case, suite, name in (scan_script if script else scan_cpp)(path, text):
            found.setdefault(case, {}).setdefault(suite, {})[name] = None
    return found


def table(titles, found):
    lines = ["<!-- SPDX-License-Identifier: BSD-2-Clause -->", "# Cases from the field, and the tests that show them", "",
             "Made by `tests/cases.py` from the ids that tests carry; a suite is run by `tests/run.py --only SUITE`.", "",
             "| case | what it is about | tests |", "|---|---|---|"]
    for case, title in sorted(titles.items()):
        tests = "<br>".join(f"**{suite}**: " + "; ".join(names).replace("|", "\\|") for suite, names in
                            sorted(found.get(case, {}).items()))
        lines.append(f"| {case} | {title} | {tests or '*none yet*'} |")
    return "\n".join(lines) + "\n"


def main():
    with open(os.path.join(ROOT, "tests/cases.toml"), "rb") as file:
        titles = tomllib.load(file)["cases"]
    found = scan()
    text, path = table(titles, found), os.path.join(ROOT, TABLE)
    unknown = sorted(set(found) - set(titles))
    missing = sorted(set(titles) - set(found))
    if sys.argv[1:] != ["--check"]:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
        print(f"{TABLE}: {len(titles) - len(missing)} cases with tests, {len(missing)} without: {' '.join(missing)}")
        return 0
    for case in unknown:
        print(f"FAIL case_{case} is in a test but not in tests/cases.toml")
    with open(path) as file:
        fresh = file.read() == text
    print("ok" if fresh else "FAIL", f"{TABLE} is what the tests say" + ("" if fresh else ": run tests/cases.py"))
    print(f"{len(missing)} cases have no test: {' '.join(missing)}")
    failed = len(unknown) + (not fresh)
    print(f"{int(fresh) + (not unknown)} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
