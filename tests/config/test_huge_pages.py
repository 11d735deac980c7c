"""Memory in huge pages."""

import os
import re
import subprocess
import sys

from config.huge_pages import SIZE, regions

MAPS = """\
00400000-00800000 r--p 00000000 fe:00 260386                     /usr/bin/python3
00800000-01000000 rw-p 00000000 fe:00 260386                     /usr/bin/python3
01000000-01300000 rw-p 00000000 00:00 0                          [heap]
7f0000001000-7f0000a01000 rw-p 00000000 00:00 0
7f0001000000-7f00011fffff rw-p 00000000 00:00 0
7f0002000000-7f0003000000 rw-s 00000000 00:01 1025               /dev/zero (deleted)
7f0004000000-7f0005000000 ---p 00000000 00:00 0
7ffd00000000-7ffd00800000 rw-p 00000000 00:00 0                  [stack]
"""
PROGRAM = """
import sys
from config.huge_pages import collapse
kept = bytearray(b"abc") * (16 << 20)
def huge_kb():
    return next(int(line.split()[1]) for line in open("/proc/self/smaps_rollup") if line.startswith("AnonHuge"))
collapse()
print(huge_kb(), kept == b"abc" * (16 << 20))
"""


def test_only_private_memory_is_moved_and_only_whole_pages():
    assert [*regions(MAPS.splitlines())] == [(0x1000000, 0x1200000), (0x7F0000200000, 0x7F0000A00000)]


def test_what_is_in_memory_stays_and_is_in_huge_pages_where_the_kernel_has_them():
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    huge_kb, same = run.stdout.split()
    release = tuple(map(int, re.findall(r"\d+", os.uname().release)[:2]))

    assert same == "True"
    if release >= (6, 1):
        assert int(huge_kb) * 1024 >= SIZE  # of 48 MB: all of it, unless memory is fragmented
