#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the pyverbs tests that the distribution ships, and compares the outcome with a list that only grows.

pyverbs-expected.txt names every test as `ok` or `skip` with the reason that was given. A failure or error fails; so does a test
listed ok that was skipped or is gone, and a skip that is not listed. A listed skip that is ok by now is reported, so that the list
can grow: --update writes it anew. Each test gets the same random numbers in every run.
"""
import argparse
import gzip
import os
import random
import shutil
import sys
import time
import unittest

SOURCE = "/usr/share/doc/rdma-core/tests"


def arguments():
    here = os.path.dirname(os.path.abspath(__file__))
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--dev", default="ordma0")
    ap.add_argument("--gid", default="1")
    ap.add_argument("--work", required=True, help="folder for the unpacked tests")
    ap.add_argument("--expected", default=os.path.join(here, "pyverbs-expected.txt"))
    ap.add_argument("--update", action="store_true", help="write the list anew from this run")
    ap.add_argument("tests", nargs="*", help="only tests whose id contains one of these words")
    return ap.parse_args()


def unpack(work):
    folder = os.path.join(work, "tests")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for name in os.listdir(SOURCE):
        path = os.path.join(SOURCE, name)
        opened = gzip.open(path, "rb") if name.endswith(".gz") else open(path, "rb")
        with opened as source, open(os.path.join(folder, name.removesuffix(".gz")), "wb") as target:
            shutil.copyfileobj(source, target)


class Outcome(unittest.TestResult):
    """What became of each test, by id; details of what went wrong are printed at once."""

    def __init__(self):
        super().__init__()
        self.by_id = {}

    def startTest(self, test):
        super().startTest(test)
        random.seed(test.id())
        self.started = time.monotonic()

    def note(self, test, what, why=""):
        # A failed subtest or teardown must not be covered by what comes later.
        if self.by_id.get(test.id(), ("",))[0] not in ("FAIL", "ERROR"):
            self.by_id[test.id()] = (what, " ".join(why.split()))

    def addSuccess(self, test):
        self.note(test, "ok")

    def addSkip(self, test, reason):
        self.note(test, "skip", reason)

    def wrong(self, test, what, err):
        self.note(test, what)
        print(f"{what} {test.id()}\n{self._exc_info_to_string(err, test)}", flush=True)

    def addFailure(self, test, err):
        self.wrong(test, "FAIL", err)

    def addError(self, test, err):
        self.wrong(test, "ERROR", err)

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.wrong(test, "FAIL", err)

    def addExpectedFailure(self, test, err):
        self.note(test, "ok")

    def addUnexpectedSuccess(self, test):
        self.note(test, "FAIL")


def run(options):
    unpack(options.work)
    # The tests know their argument parser as a module of its own, and themselves as a package.
    sys.path[:0] = [options.work, os.path.join(options.work, "tests")]
    sys.argv = [sys.argv[0], "--dev", options.dev, "--gid", options.gid]
    from args_parser import parser
    parser.parse_args()
    suite = unittest.TestSuite()
    for name in sorted(os.listdir(os.path.join(options.work, "tests"))):
        if name.startswith("test_") and name.endswith(".py"):
            suite.addTests(unittest.defaultTestLoader.loadTestsFromName(f"tests.{name[:-3]}"))
    outcome = Outcome()
    chosen = [t for t in flat(suite) if not options.tests or any(word in t.id() for word in options.tests)]
    unittest.TestSuite(chosen).run(outcome)
    return outcome.by_id


def flat(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flat(test)
        else:
            yield test


def read_expected(path):
    expected = {}
    with open(path) as lines:
        for line in lines:
            words = line.split(None, 2)
            if words and not line.startswith("#"):
                expected[words[1]] = words[0]
    return expected


def write_expected(path, found):
    with open(path, "w") as out:
        out.write("# SPDX-License-Identifier: BSD-2-Clause\n"
                  "# The pyverbs tests of rdma-core 44 on a native soft NIC: tests/native/pyverbs.sh --update writes this.\n")
        for test, (what, why) in sorted(found.items()):
            out.write(f"{what} {test}{' ' + why if why else ''}\n")


def judge(found, expected):
    problems, news = [], []
    for test, (what, why) in sorted(found.items()):
        before = expected.get(test)
        if what in ("FAIL", "ERROR"):
            problems.append(f"{what} {test}")
        elif what == "skip" and before != "skip":
            problems.append(f"FAIL {test}: skipped ({why}), " + ("listed ok" if before == "ok" else "not listed"))
        elif what == "ok" and before != "ok":
            news.append(test)
    problems += [f"FAIL {test}: listed ok, but there is no such test" for test, what in sorted(expected.items())
                 if what == "ok" and test not in found]
    return problems, news


def main():
    options = arguments()
    found = run(options)
    bad = [t for t, (what, _) in found.items() if what in ("FAIL", "ERROR")]
    if options.update:
        if bad or options.tests:
            sys.exit("no list is written of a run that failed or was partial")
        write_expected(options.expected, found)
    expected = read_expected(options.expected)
    if options.tests:
        expected = {test: what for test, what in expected.items() if test in found}
    problems, news = judge(found, expected)
    for line in problems:
        print(line)
    for test in news:
        print(f"newly ok, add it to {os.path.basename(options.expected)} (--update): {test}")
    passed = sum(what == "ok" for what, _ in found.values())
    print(f"{len(found) - passed - len(bad)} tests ask for what the device does not offer, as listed in {os.path.basename(options.expected)}")
    print(f"{passed} passed, {len(problems)} failed, 0 skipped")
    return 1 if problems or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
