"""What handlers change in the process is noticed and put back."""

import os
import subprocess
import sys
import tempfile
import unittest

from ordain_worker import tidy
from ordain_worker.tidy import Descriptors


class Noticed(unittest.TestCase):
    """Four descriptors: of two pipes and two files."""

    def setUp(self):
        self.fds = []
        for _ in range(2):
            self.fds += os.pipe()
        for _ in range(2):
            with tempfile.TemporaryFile() as file:
                self.fds.append(os.dup(file.fileno()))
        self.watched = self.fds[1:3] + self.fds[4:]
        self.addCleanup(lambda: [os.close(fd) for fd in self.fds])

    def test_nothing_changed(self):
        known = Descriptors(*self.watched)
        self.assertEqual([known.lost(fd) for fd in self.watched], [False] * 4)

    def test_closed_replaced_and_swapped(self):
        def opened(fd):
            with open(os.devnull) as other:
                os.dup2(other.fileno(), fd)

        ways = {
            "closed": os.close,
            "another file": opened,
            "another of them": lambda fd: os.dup2(next(each for each in self.watched if each != fd), fd),
        }
        for way, change in ways.items():
            for fd in self.watched:
                with self.subTest(way, fd=fd):
                    spare, known = os.dup(fd), Descriptors(*self.watched)
                    try:
                        change(fd)
                        self.assertEqual([each for each in self.watched if known.lost(each)], [fd])
                    finally:
                        os.dup2(spare, fd)
                        os.close(spare)
                    self.assertFalse(known.lost(fd))  # a copy stands for the same file

    def test_two_of_one_file(self):
        os.dup2(self.watched[2], self.watched[3])
        known = Descriptors(*self.watched)
        with open(os.devnull) as other:
            os.dup2(other.fileno(), self.watched[3])
        self.assertEqual([each for each in self.watched if known.lost(each)], [self.watched[3]])


class PutBack(unittest.TestCase):
    """Runs in a process of its own, because it changes the descriptors 1 and 2."""

    SCRIPT = """
import os, sys
sys.path.insert(0, sys.argv[1])
from ordain_worker.tidy import Tidy
requests, replies = os.pipe()
tidy = Tidy(requests, replies)
said = [tidy.check(True, 0)]
%s
said.append(tidy.check(True, 0))
said.append(tidy.check(True, 0))
print("printed")
print(said, file=sys.stderr)
"""

    def after(self, *what):
        script = self.SCRIPT % "\n".join(what)
        runtime = os.path.dirname(os.path.dirname(tidy.__file__))
        ran = subprocess.run([sys.executable, "-I", "-c", script, runtime], capture_output=True, text=True)
        return ran.returncode, ran.stdout, ran.stderr

    def test_output(self):
        for name, fd in (("output", 1), ("error", 2)):
            for change in (
                f"os.close({fd})",
                f"os.dup2({3 - fd}, {fd})",
                f"os.dup2(os.open('/dev/null', os.O_WRONLY), {fd})",
            ):
                with self.subTest(change):
                    note = f"standard {name} of the executor had been closed or replaced, and was put back"
                    self.assertEqual(self.after(change), (0, "printed\n", f"{[([], ''), ([note], ''), ([], '')]}\n"))

    def test_replies(self):
        code, out, said = self.after("os.dup2(1, replies)")
        self.assertNotEqual(code, 0)
        self.assertEqual(
            (out, said), ("", "A handler closed or replaced the file descriptor that replies go through.\n")
        )

    def test_requests(self):
        why = "a handler closed or replaced the file descriptor that its requests come from"
        self.assertEqual(self.after("os.close(requests)"), (0, "printed\n", f"{[([], ''), ([], why), ([], why)]}\n"))

    def test_folder_and_mask(self):
        code, _, said = self.after("os.chdir('/'); os.umask(0o777)")
        self.assertEqual((code, said.count("was put back")), (0, 2))


if __name__ == "__main__":
    unittest.main()
