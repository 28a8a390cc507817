#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the suites of tests/suites.toml and prints one closing line.

Every suite runs in its own process group under a watchdog. A suite's result is what it prints: a JUnit file (Catch2) or a
closing line 'N passed, N failed, N skipped' (plain). A skip counts as a pass nowhere: each skipped id must stand in
tests/skips.toml with the resource it lacks, and one that stands there without being skipped is a failure too.
"""
import argparse, json, os, re, signal, subprocess, sys, time, tomllib
import xml.etree.ElementTree as ET

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CLOSING = re.compile(r"^(?:\w+: )?(\d+) passed, (\d+) failed(?:, (\d+) skipped)?\s*$", re.M)
SKIP = re.compile(r"^SKIP (\S+)(?:: (.*))?$", re.M)
TIERS = {"fast": 0, "check": 1, "soak": 2}


class Result:
    def __init__(self, name):
        self.name, self.passed, self.failed, self.skipped = name, 0, 0, 0
        self.seconds, self.why, self.skips, self.log, self.tier = 0.0, "", [], "", ""


def kill_group(proc):
    for sig in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(proc.pid, sig)
        except ProcessLookupError:
            return
        try:
            proc.wait(5)
        except subprocess.TimeoutExpired:
            pass


def execute(suite, env, log_path, budget):
    """Runs the command; returns (exit status or None on time-out)."""
    limit = min(suite.get("timeout", 300), max(budget, 1))
    with open(log_path, "wb") as log:
        proc = subprocess.Popen(suite["command"], shell=True, cwd=ROOT, env=env, stdout=log, stderr=subprocess.STDOUT,
                                stdin=subprocess.DEVNULL, start_new_session=True)
        try:
            return proc.wait(limit), limit
        except subprocess.TimeoutExpired:
            return None, limit
        finally:
            kill_group(proc)


def read_junit(result, path):
    for case in ET.parse(path).getroot().iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            result.failed += 1
        elif case.find("skipped") is not None:
            result.skipped += 1
            result.skips.append(case.get("name"))
        else:
            result.passed += 1


def run_suite(suite, out, scale, budget):
    result = Result(suite["name"])
    result.tier = suite["tier"]
    result.log = os.path.join(out, suite["name"] + ".log")
    junit = os.path.join(out, suite["name"] + ".xml")
    if os.path.exists(junit):
        os.unlink(junit)
    env = dict(os.environ, ORDMA_TEST_SCALE=scale, ORDMA_TEST_OUT=out, ORDMA_JUNIT=junit, ORDMA_ROOT=ROOT)
    start = time.monotonic()
    status, limit = execute(suite, env, result.log, budget)
    result.seconds = time.monotonic() - start
    text = open(result.log, errors="replace").read()
    if suite.get("format", "plain") == "catch2":
        if os.path.exists(junit):
            try:
                read_junit(result, junit)
            except ET.ParseError:
                result.why = "unreadable report"
    else:
        closing = CLOSING.findall(text)
        if closing:
            result.passed, result.failed = int(closing[-1][0]), int(closing[-1][1])
            result.skipped = int(closing[-1][2] or 0)
            result.skips = [m[0] for m in SKIP.findall(text)]
    if status is None:
        result.why = f"no end within {limit:.0f} s"
    elif status != 0 and not result.failed:
        result.why = f"exit status {status}"
    elif not (result.passed or result.failed or result.skipped):
        result.why = result.why or "reported no test"
    if len(result.skips) != result.skipped:
        result.why = result.why or "skipped tests without an id"
    if result.why:
        result.failed += 1
    return result


def check_skips(results, listed, ran):
    """Unlisted skips fail, and so do listed ones whose suite ran and did not skip them."""
    problems = []
    known = {(s["suite"], s["id"]): s for s in listed}
    seen = {(r.name, s) for r in results for s in r.skips}
    for key in sorted(seen - set(known)):
        problems.append(f"{key[0]}: {key[1]} was skipped but is not in tests/skips.toml")
    for key in sorted(set(known) - seen):
        if key[0] in ran and not known[key].get("may_run", False):
            problems.append(f"{key[0]}: {key[1]} is in tests/skips.toml but ran: remove the entry")
    return problems


def write_junit(results, path):
    root = ET.Element("testsuites")
    for r in results:
        s = ET.SubElement(root, "testsuite", name=r.name, tests=str(r.passed + r.failed + r.skipped), failures=str(r.failed),
                          skipped=str(r.skipped), time=f"{r.seconds:.1f}")
        if r.why:
            ET.SubElement(ET.SubElement(s, "testcase", name=r.name), "failure", message=r.why)
    ET.ElementTree(root).write(path)


def report(results, problems, out):
    print("\nsuite                     tier    seconds  passed  failed  skipped")
    for r in results:
        print(f"{r.name:<25} {r.tier:<6} {r.seconds:8.1f} {r.passed:7d} {r.failed:7d} {r.skipped:8d}  {r.why}")
    for tier in TIERS:
        seconds = sum(r.seconds for r in results if r.tier == tier)
        if seconds:
            print(f"tier {tier}: {seconds:.0f} s")
    for p in problems:
        print("skip list:", p)
    write_junit(results, os.path.join(out, "summary.xml"))
    json.dump([{k: v for k, v in vars(r).items() if k != "log"} for r in results], open(os.path.join(out, "summary.json"), "w"), indent=1)
    passed = sum(r.passed for r in results)
    failed = sum(r.failed for r in results) + len(problems)
    skipped = sum(r.skipped for r in results)
    print(f"{passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return 1 if failed or not passed else 0


def main():
    ap = argparse.ArgumentParser(description="Run the test suites of tests/suites.toml.")
    ap.add_argument("--tier", choices=TIERS, default="check", help="run every suite up to this tier")
    ap.add_argument("--only", action="append", default=[], help="run only this suite (repeatable)")
    ap.add_argument("--list", action="store_true", help="list the suites")
    ap.add_argument("--time", type=float, default=4200, help="seconds for all suites together; what does not fit fails")
    args = ap.parse_args()
    conf = tomllib.load(open(os.path.join(ROOT, "tests/suites.toml"), "rb"))
    skips = tomllib.load(open(os.path.join(ROOT, "tests/skips.toml"), "rb")).get("skip", [])
    suites = [s for s in conf["suite"] if (s["name"] in args.only if args.only else TIERS[s["tier"]] <= TIERS[args.tier])]
    if args.list:
        for s in suites:
            print(f"{s['name']:<25} {s['tier']:<6} {s['proves']}")
        return 0
    unknown = set(args.only) - {s["name"] for s in suites}
    if unknown:
        sys.exit(f"tests/run.py: no such suite: {', '.join(sorted(unknown))}; --list names them")
    out = os.path.join(ROOT, "build/test")
    os.makedirs(out, exist_ok=True)
    results, end = [], time.monotonic() + args.time
    for i, suite in enumerate(suites, 1):
        print(f"[{i}/{len(suites)}] {suite['name']}: {suite['proves']}", flush=True)
        r = run_suite(suite, out, args.tier, end - time.monotonic())
        print(f"    {r.passed} passed, {r.failed} failed, {r.skipped} skipped in {r.seconds:.1f} s{' (' + r.why + ')' if r.why else ''}", flush=True)
        if r.failed:
            tail = open(r.log, errors="replace").read().splitlines()[-40:]
            print("\n".join("    | " + line for line in tail) + f"\n    whole log: {os.path.relpath(r.log, ROOT)}", flush=True)
        results.append(r)
    return report(results, check_skips(results, skips, {s["name"] for s in suites}), out)


if __name__ == "__main__":
    sys.exit(main())
