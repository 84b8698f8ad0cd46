"""What handlers leave in disorder is found and put back."""

import fcntl
import os
import signal
import subprocess
import sys
import tempfile
import unittest

from ordain_worker import tidy
from ordain_worker.tidy import Marks, Tidy


class Found(unittest.TestCase):
    """Marks of four descriptors: two pipes and two files."""

    def setUp(self):
        self.fds = []
        for _ in range(2):
            self.fds += os.pipe()
        for _ in range(2):
            with tempfile.TemporaryFile() as file:
                self.fds.append(os.dup(file.fileno()))
        self.watched = self.fds[1:3] + self.fds[4:]
        self.addCleanup(lambda: [os.close(fd) for fd in self.fds])

    def test_nothing(self):
        marks = Marks(*self.watched)
        self.assertEqual((marks.kept(), [marks.lost(fd) for fd in self.watched]), (True, [False] * 4))

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
                    spare, marks = os.dup(fd), Marks(*self.watched)
                    try:
                        change(fd)
                        self.assertEqual((marks.kept(), [each for each in self.watched if marks.lost(each)]), (False, [fd]))
                    finally:
                        os.dup2(spare, fd)
                        os.close(spare)
                    self.assertTrue(marks.kept())  # a copy is the same open file

    def test_two_of_one_open_file(self):
        os.dup2(self.watched[2], self.watched[3])
        marks = Marks(*self.watched)
        self.assertTrue(marks.kept())
        with open(os.devnull) as other:
            os.dup2(other.fileno(), self.watched[3])
        self.assertEqual([each for each in self.watched if marks.lost(each)], [self.watched[3]])

    @unittest.skipUnless(hasattr(fcntl, "F_SETSIG"), "no such number here")
    def test_another_who_uses_that_number(self):
        marks = Marks(*self.watched)
        fcntl.fcntl(self.watched[0], fcntl.F_SETSIG, signal.SIGUSR1)
        self.assertEqual((marks.kept(), marks.lost(self.watched[0])), (False, False))
        marks.renew()
        self.assertTrue(marks.kept())

    def test_a_kernel_without_such_a_number(self):
        before, tidy.fcntl = tidy.fcntl, object()
        self.addCleanup(setattr, tidy, "fcntl", before)
        marks = Marks(*self.watched)
        self.assertEqual((marks.kept(), marks.lost(self.watched[1])), (False, False))
        with open(os.devnull) as other:
            os.dup2(other.fileno(), self.watched[1])
        self.assertTrue(marks.lost(self.watched[1]))


class PutBack(unittest.TestCase):
    """A process of its own does this: it is about the descriptors 1 and 2."""

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
            for change in (f"os.close({fd})", f"os.dup2({3 - fd}, {fd})", f"os.dup2(os.open('/dev/null', os.O_WRONLY), {fd})"):
                with self.subTest(change):
                    note = f"standard {name} of the executor had been closed or replaced, and was put back"
                    self.assertEqual(self.after(change), (0, "printed\n", f"{[([], ''), ([note], ''), ([], '')]}\n"))

    def test_replies(self):
        code, out, said = self.after("os.dup2(1, replies)")
        self.assertNotEqual(code, 0)
        self.assertEqual((out, said), ("", "A handler closed or replaced the file descriptor that replies go through.\n"))

    def test_requests(self):
        why = "a handler closed or replaced the file descriptor that its requests come from"
        self.assertEqual(self.after("os.close(requests)"), (0, "printed\n", f"{[([], ''), ([], why), ([], why)]}\n"))

    def test_folder_and_mask(self):
        code, _, said = self.after("os.chdir('/'); os.umask(0o777)")
        self.assertEqual((code, said.count("was put back")), (0, 2))


if __name__ == "__main__":
    unittest.main()
