#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""ordma.ko in guests, on the soft-device: the verbs and rdma_cm programs of the distribution, life cycle, ABI, death of the NIC.
Arguments: names of scenarios; none means all."""

import signal
import sys

sys.dont_write_bytecode = True
from rig import GUEST, ROOT, Report, Rig, names, stop_on_missing


def script(name):
    return ["bash", str(GUEST / name)]


def scenario(report, name, file, kernel="6.1", timeout=400, vm_args=()):
    with Rig() as rig:
        report.collect(name, rig.start(script(file), kernel=kernel, timeout=timeout, vm_args=vm_args), names(file))


def device(report):
    scenario(report, "device", "device.sh", timeout=900)


def lifecycle(report):
    scenario(report, "lifecycle", "lifecycle.sh", timeout=600)


def smoke_612(report):
    scenario(report, "6.12", "smoke.sh", kernel="6.12")


def abi(report):
    with Rig(nics=1) as rig:
        run = rig.start(["/usr/bin/python3", str(GUEST / "abi.py")], timeout=200)
        report.collect("abi", run, names("abi.py"))


def dead(report):
    """What the driver says about a NIC that is gone is expected in this kernel log, and in no other."""
    allow = ROOT / "tests" / "vm" / "dmesg-dead.txt"
    with Rig() as rig:
        run = rig.start(script("dead.sh"), timeout=300, vm_args=["--dmesg-allow", allow])
        report.add(rig.wait_for("kill-me", run, 1200), "dead/traffic")
        rig.kill()
        report.collect("dead", run, names("dead.sh"))


def two(report):
    with Rig(nics=2, guests=2) as rig:
        run = rig.start(script("two.sh"), script("two.sh"), timeout=600)
        report.collect("two", run, names("two.sh"))


def pyverbs(report):
    with Rig() as rig:
        run = rig.start(["bash", str(GUEST / "pyverbs.sh")], timeout=900)
        report.collect("pyverbs", run, names("pyverbs.sh"))


SCENARIOS = {
    "abi": abi,
    "dead": dead,
    "lifecycle": lifecycle,
    "6.12": smoke_612,
    "two": two,
    "device": device,
    "pyverbs": pyverbs,
}


def main():
    stop_on_missing()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # scenarios end what they started
    report = Report()
    for name in sys.argv[1:] or SCENARIOS:
        SCENARIOS[name](report)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
