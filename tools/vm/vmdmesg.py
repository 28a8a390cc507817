# SPDX-License-Identifier: BSD-2-Clause
"""Judges a guest's kernel log: nothing above notice that the allow-list does not explain."""

import re

from vmimage import TOP, VmError

ALLOW_LIST = TOP / "tests" / "vm" / "dmesg-allow.txt"
LEVEL_WARNING = 4

# Some of these come at a mild level; whatever the level, they are never explained away as noise.
_BAD = re.compile(
    r"BUG:|WARNING:|Oops|general protection|Call Trace|INFO: task .* blocked|soft lockup|rcu: INFO|"
    r"UBSAN|refcount_t|list_(add|del) corruption|(Redzone|Poison|Object|Padding) .*(overwritten|corrupt)|"
    r"Objects remaining in|Slab .* corrupt|leaked|DMA-API"
)
_LINE = re.compile(r"<(\d+)>\[ *\d+\.\d+\] ?(.*)")


def read_allow_list(path):
    """Patterns of the list; each stands under at least one comment line that says why."""
    patterns = []
    explained = False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("#"):
            explained = True
        elif not line.strip():
            explained = False
        elif not explained:
            raise VmError(f"{path}:{number}: a pattern without a reason above it")
        else:
            try:
                patterns.append(re.compile(line))
            except re.error as error:
                raise VmError(f"{path}:{number}: {error}") from error
    return patterns


def findings(log, allowed):
    """Lines of a raw kernel log (dmesg -r) that need an explanation."""
    found = []
    for line in log.splitlines():
        match = _LINE.match(line)
        if not match:
            continue
        level, text = int(match[1]), match[2]
        if level >= 8:  # another facility: a program wrote it to /dev/kmsg
            continue
        if _BAD.search(text) or (level <= LEVEL_WARNING and not any(p.fullmatch(text) for p in allowed)):
            found.append(text)
    return found
