"""What a hostile author would try. Plug-ins and handlers run the same attacks."""

import ctypes
import json
import os
import socket
import subprocess
import sys


def first_file(folder):
    for parent, _, names in os.walk(folder):
        for name in names:
            return os.path.join(parent, name)
    raise OSError("there is no file in " + folder)


def read(path):
    with open(path, "rb") as file:
        return bool(file.read(64))


def call(name, *args):
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*args) < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return True


def append(path):
    with open(path, "a") as file:
        file.write("\n")
    return True


def create(folder):
    path = os.path.join(folder, "planted")
    with open(path, "w") as file:
        file.write("print('here I am')")
    os.remove(path)
    return True


def connect(address):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(address)
    return True


def is_root(*command):
    return subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout.strip() == "0"


def process_memory(pid):
    with open(f"/proc/{pid}/maps") as maps:
        start = int(maps.readline().split("-")[0], 16)
    with open(f"/proc/{pid}/mem", "rb") as memory:
        memory.seek(start)
        return bool(memory.read(16))


def signalled(pid):
    os.kill(pid, 0)
    return True


def traced(pid):
    "in a process that ends at once, because the other one would stop at its next signal"
    child = os.fork()
    if child == 0:
        try:
            call("ptrace", 0x4206, pid, 0, 0)  # PTRACE_SEIZE
            os._exit(0)
        finally:
            os._exit(1)
    if os.waitpid(child, 0)[1]:
        raise OSError("it cannot be traced")
    return True


def attacks(t):
    server, other = t["server"], t["other_process"]
    for what in ("secret", "log", "other_code", "other_checkout", "other_venv", "other_cache", "mirrors", "stranger"):
        path = t[what]
        yield f"read {what}", lambda path=path: read(path if os.path.isfile(path) else first_file(path))
    for what in ("secret", "other_checkout", "state"):
        path = t[what]
        mode = os.stat(path).st_mode & 0o7777 if os.path.exists(path) else 0o700
        yield f"change the mode of {what}", lambda path=path, mode=mode: os.chmod(path, mode) is None
    for what in ("other_code", "other_checkout", "other_venv", "other_cache", "own_checkout", "own_venv", "state"):
        path = t[what]
        yield f"write to {what}", lambda path=path: create(path)
    yield "change the own checkout", lambda: append(os.path.join(t["own_checkout"], "main.cf"))
    for name, pid in (("the server", server), ("the executor of another environment", other)):
        yield f"read the environment of {name}", lambda pid=pid: read(f"/proc/{pid}/environ")
        yield f"read the memory of {name}", lambda pid=pid: process_memory(pid)
        yield f"read files through {name}", lambda pid=pid: read(f"/proc/{pid}/root{t['secret']}")
        yield f"signal {name}", lambda pid=pid: signalled(pid)
        yield f"trace {name}", lambda pid=pid: traced(pid)
    yield "connect to the database", lambda: connect(t["database"])
    yield "connect to an abstract socket", lambda: connect("\0" + t["abstract"])
    yield "become root", lambda: os.setuid(0) is None and t["uid"] != 0
    yield "run a program as root", lambda: is_root(t["setuid"], "-u") and t["uid"] != 0
    yield "make a namespace", lambda: call("unshare", 0x10000000)
    yield "mount", lambda: mounted(os.getcwd().encode())
    yield "read /etc/shadow", lambda: read("/etc/shadow")
    yield "write to /usr", lambda: create("/usr")
    yield "write to /etc", lambda: create("/etc")


def mounted(folder):
    """a mount that is left would keep the folder from being removed"""
    return call("mount", b"tmpfs", folder, b"tmpfs", 0, None) and call("umount2", folder, 2)


def run(text):
    out = {}
    for name, attack in attacks(json.loads(text)):
        try:
            out[name] = "done" if attack() else "nothing"
        except (OSError, PermissionError) as refused:
            out[name] = f"refused: {refused.strerror or refused}"
        except Exception as other:
            out[name] = f"refused: {other!r}"
    return json.dumps(out)


def life():
    """What code does that means well."""
    import multiprocessing
    import tempfile
    import threading

    with tempfile.NamedTemporaryFile() as file:
        file.write(b"x")
    home = os.path.expanduser("~")
    with open(os.path.join(home, "kept"), "w") as file:
        file.write("x")
    lock = multiprocessing.Lock()
    lock.acquire()
    thread = threading.Thread(target=lock.release)
    thread.start()
    thread.join()
    said = subprocess.run(["sh", "-c", "echo $HOME; id -u; test -w /dev/null; git --version"], capture_output=True, text=True)
    socket.getaddrinfo("localhost", 80)
    import ssl

    ssl.create_default_context()
    a, b = socket.socketpair()
    a.close(), b.close()
    return said.stdout + said.stderr + sys.version
