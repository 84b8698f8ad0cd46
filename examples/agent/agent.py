#!/usr/bin/env python3
"""A remote agent for Ordain in Python: docs/agent-protocol.md from the other side.

It needs the standard library, the package `websockets` and the program openssl. It runs handlers one after the other,
in a worker process for each blueprint, with the Python runtime that the server sends. Usage:

    agent.py --join TOKEN --state-dir DIR       once, and then: agent.py --state-dir DIR
"""
import argparse, base64, collections, fcntl, hashlib, json, os, pathlib, platform, queue, random, shutil, ssl, struct
import subprocess, sys, threading, time, urllib.error, urllib.request, zipfile
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

MIB = 1 << 20
FINAL = {"certificate", "expired", "revoked", "removed"}


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def said(status, text, level="ERROR"):
    line = {"level": level, "msg": text, "timestamp": now()}
    return {"status": status, "change": "nochange", "lines": [line], "duration_ms": 0}


class Refused(Exception):
    """The command cannot be carried out."""


def write(path, data):
    """Write a file so that it is on the disk whole or not at all, for its owner alone."""
    temp = path.with_name("." + path.name + ".new")
    with open(os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as f:
        f.write(data)
        f.flush()
        os.fsync(f.fileno())
    temp.rename(path)


class Worker:
    """A process with the handlers of one blueprint; see PROTOCOL.md of internal/python/worker."""

    def __init__(self, python, runtime, path, variables, plain, ask):
        self.ask, self.next, self.replies, self.lines = ask, 0, {}, []
        self.lock, self.words, self.hello = threading.Lock(), collections.deque(maxlen=20), threading.Event()
        (read, theirs_out), (theirs_in, write_) = os.pipe(), os.pipe()
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (theirs_in, theirs_out)]

        def place():
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        env = {k: os.environ[k] for k in ("PATH", "HOME", "LANG", "TZ", "TMPDIR") if k in os.environ}
        options = json.dumps({"path": path, "memory": 0})
        main = os.path.join(runtime, "ordain_worker", "__main__.py")
        self.process = subprocess.Popen(
            [python, "-I", "-X", "utf8", main, "handler", options], env=env | variables, preexec_fn=place,
            pass_fds=(3, 4), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True)
        for fd in (theirs_in, theirs_out, *high):
            os.close(fd)
        self.reader, self.writer = os.fdopen(read, "rb"), os.fdopen(write_, "wb")
        for loop in (self._read, self._listen):
            threading.Thread(target=loop, daemon=True).start()
        if not self.hello.wait(60):
            raise RuntimeError("the worker did not start:\n" + "".join(self.words))
        self.secrets = [k for k, v in variables.items() if k not in plain and len(v) >= 6]

    def _listen(self):
        for line in self.process.stdout:
            self.words.append(line.decode(errors="replace"))

    def _read(self):
        while len(head := self.reader.read(4)) == 4:
            frame = json.loads(self.reader.read(struct.unpack(">I", head)[0]))
            if "re" in frame:
                self.replies.pop(frame["re"]).put(frame)
            elif "id" in frame:
                threading.Thread(target=self._answer, args=(frame,), daemon=True).start()
            elif frame.get("op") == "log":
                self.lines.append(frame["args"])
            elif frame.get("op") == "hello":
                self.hello.set()
        self.hello.set()
        for waiting in list(self.replies.values()):
            waiting.put(None)

    def _answer(self, frame):
        try:
            self._send({"re": frame["id"], "ok": self.ask(frame["op"], frame["args"])})
        except Exception as e:
            self._send({"re": frame["id"], "err": {"kind": "unavailable", "message": str(e)}})

    def _send(self, frame):
        data = json.dumps(frame).encode()
        with self.lock:
            self.writer.write(struct.pack(">I", len(data)) + data)
            self.writer.flush()

    def call(self, op, args, timeout=None):
        with self.lock:
            self.next += 1
            number, waiting = self.next, queue.Queue()
            self.replies[number] = waiting
        try:
            self._send({"id": number, "op": op, "args": args})
            frame = waiting.get(timeout=timeout)
        except (BrokenPipeError, queue.Empty) as e:
            frame = None if isinstance(e, BrokenPipeError) else {"err": {"message": "it took too long"}, "late": True}
        if frame is None or "late" in frame:
            self.end()
            what = frame["err"]["message"] if frame else "the process ended"
            raise RuntimeError(f"{what}; its last words:\n" + "".join(self.words))
        if "err" in frame:
            raise RuntimeError(frame["err"]["message"])
        return frame["ok"]

    def end(self):
        try:
            os.killpg(self.process.pid, 9)
        except ProcessLookupError:
            pass
        self.process.wait()


class Agent:
    def __init__(self, root):
        self.root = root
        for name in ("contents", "answers", "made"):
            (root / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        self.about = json.loads((root / "agent.json").read_text())
        self.commands, self.recorded, self.seen = {}, set(), 0  # id → None while it runs, True when it is answered
        self.todo, self.cancelled, self.current = queue.Queue(), set(), None
        self.workers, self.calls, self.number, self.key = {}, {}, 0, None
        self.ws, self.lock, self.sending, self.arriving = None, threading.RLock(), threading.Lock(), {}
        journal = root / "journal"
        for line in journal.read_text().splitlines() if journal.exists() else ():
            try:
                entry = json.loads(line)
            except ValueError:
                continue  # a crash cut it off
            self.seen = max(self.seen, entry.get("seq", 0))
            if "recorded" in entry:
                self.recorded.add(entry["recorded"])
                self.commands.pop(entry["recorded"], None)
            else:
                self.commands[entry["id"]] = True
        self.journal = open(journal, "a")
        for id in self.commands:
            if not (root / "answers" / id).exists():
                self.keep(id, said("lost", "The agent ended while it carried out this command."))
        threading.Thread(target=self.work, daemon=True).start()

    # What lies on the disk.

    def note(self, **entry):
        self.journal.write(json.dumps(entry) + "\n")
        self.journal.flush()
        os.fsync(self.journal.fileno())

    def keep(self, id, answer):
        data = json.dumps(answer).encode()
        if len(data) > 64 * MIB:
            data = json.dumps(said("failed", f"The answer has {len(data)} bytes, which is too much.")).encode()
        write(self.root / "answers" / id, data)

    def content(self, hash):
        path = self.root / "contents" / hash
        data = path.read_bytes() if path.exists() else None
        if data is None:
            raise Refused(f"the content {hash} is missing")
        if hashlib.sha256(data).hexdigest() != hash:
            path.unlink()
            self.send({"type": "stored", "hash": hash, "error": "it was damaged on the agent's disk"})
            raise Refused(f"the content {hash} was damaged on the agent's disk")
        return data

    def take_part(self, m):
        parts = self.arriving.setdefault(m["hash"], bytearray())
        error = None if m["offset"] == len(parts) else "its parts did not arrive in order"
        parts += base64.b64decode(m["data"])
        if m["last"] and not error:
            if len(parts) != m["size"] or hashlib.sha256(parts).hexdigest() != m["hash"]:
                error = "it does not match its hash"
            else:
                write(self.root / "contents" / m["hash"], parts)
        if m["last"] or error:
            del self.arriving[m["hash"]]
            self.send({"type": "stored", "hash": m["hash"]} | ({"error": error} if error else {}))

    # Commands.

    def take(self, m):
        id, again = m["id"], m["id"] in self.recorded
        if id in self.commands:
            if self.commands[id]:
                self.send_answer(id)
            return
        self.commands[id], m["until"] = None, time.monotonic() + m["deadline_ms"] / 1000
        if again or not m["deadline_ms"]:
            self.note(id=id, seq=m["seq"])
            text = "This command was carried out before." if again else "The command arrived after its deadline."
            return self.finish(id, said("lost" if again else "late", text))
        self.note(id=id, seq=m["seq"])
        self.seen = max(self.seen, m["seq"])
        threading.Timer(m["deadline_ms"] / 1000, self.late, (id,)).start()
        self.todo.put(m)

    def late(self, id):
        if self.finish(id, said("late", "The command was not done within its deadline.")):
            self.end(id)

    def end(self, id):
        self.cancelled.add(id)
        if self.current and self.current[0] == id and self.current[1]:
            self.current[1].end()

    def finish(self, id, answer):
        with self.lock:
            if self.commands.get(id, True):
                return False
            self.keep(id, answer)
            self.commands[id] = True
        self.send_answer(id)
        return True

    def work(self):
        while m := self.todo.get():
            if self.commands.get(m["id"], True):
                continue  # it is too late already
            began = time.monotonic()
            try:
                if m["id"] in self.cancelled:
                    answer = said("cancelled", "The command was cancelled before it began.", "INFO")
                else:
                    answer = self.carry_out(m)
            except Refused as e:
                answer = said("refused", f"The command cannot be carried out: {e}.")
            except Exception as e:
                answer = said("failed", f"The handler could not do this: {e}")
            answer["duration_ms"] = int((time.monotonic() - began) * 1000)
            self.current = None
            self.finish(m["id"], answer)

    def carry_out(self, m):
        for hash in m["needs"]:
            if not (self.root / "contents" / hash).exists():
                raise Refused(f"the content {hash} is missing")
        action, payload = m["action"], m["payload"]
        if action == "forget":
            for hash in payload.get("hashes") or ():
                (self.root / "contents" / hash).unlink(missing_ok=True)
            for key in [k for k, (b, _) in self.workers.items() if set(payload["hashes"]) & set(self.hashes(b))]:
                self.workers.pop(key)[1].end()
                shutil.rmtree(self.root / "made" / key, ignore_errors=True)
        elif action == "prepare":
            self.worker(m["id"], payload)
        elif action in ("deploy", "dryrun", "facts"):
            return self.run(m)
        else:
            raise Refused(f"this agent does not know the action {action!r}")
        return {"status": "done", "change": "nochange"}

    def hashes(self, b):
        return [*b["files"].values(), *(w["hash"] for w in b.get("wheels") or ()), b["runtime"]]

    def worker(self, id, payload):
        """The process for a blueprint with these variables."""
        b, variables = payload["blueprint"], payload.get("variables") or {}
        python = shutil.which("python" + b["python"]) if b["python"] != "%d.%d" % sys.version_info[:2] else sys.executable
        if not python:
            raise Refused(f"there is no Python {b['python']} here")
        key = hashlib.sha256(json.dumps(b, sort_keys=True).encode()).hexdigest()[:40]
        known = self.workers.get(key)
        if known and known[1].process.poll() is None and known[1].variables == variables:
            return known[1]
        if known:
            known[1].end()
        folder = self.root / "made" / key
        shutil.rmtree(folder, ignore_errors=True)
        for file, hash in b["files"].items():
            path = folder / "code" / file
            if ".." in path.parts or not path.is_relative_to(folder / "code"):
                raise Refused(f"the file {file!r} lies outside of the code folder")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self.content(hash))
        site = folder / "site"
        for name, hashes in (("runtime", [b["runtime"]]), ("site", [w["hash"] for w in b.get("wheels") or ()])):
            for hash in hashes:
                self.content(hash)
                with zipfile.ZipFile(self.root / "contents" / hash) as archive:
                    archive.extractall(folder / name)
        for data in site.glob("*.data/*lib") if site.exists() else ():
            shutil.copytree(data, site, dirs_exist_ok=True)
        ask = lambda op, args: self.ask(op, args)
        w = Worker(python, str(folder / "runtime"), [str(folder / "code"), str(site)], variables,
                   payload.get("plain") or (), ask)
        w.variables = variables
        self.current = (id, w)
        modules = [name for name, file in b["modules"].items() if file.startswith("inmanta_plugins/")]
        w.call("load", {"modules": modules, "secrets": w.secrets}, 600)
        self.workers[key] = (b, w)
        return w

    def run(self, m):
        t, id = m["payload"]["task"], m["id"]
        w, r = self.worker(id, m["payload"]), t["resource"]
        self.current, w.lines = (id, w), []
        if id in self.cancelled:
            return said("cancelled", "The command was cancelled before it began.", "INFO")
        agent = r["id"].split("[", 1)[1].split(",", 1)[0]
        reply = {"status": "failed", "change": "nochange"}
        try:
            reply |= w.call("run", {
                "action": m["action"], "action_id": id, "id": f"{r['id']},v={r['version']}", "agent": agent,
                "environment": self.about["environment"], "reason": t["reason"], "attributes": r["attributes"],
                "dependencies": t["requires"], "dependency_changed": t["dependency_changed"], "lane": 0,
                "requires": r["requires"]}, (t["timeout_ms"] or 600_000) / 1000)
        except RuntimeError as e:
            w.lines.append({"level": "CRITICAL", "msg": f"The handler did not end as it should: {e}", "timestamp": now()})
        if reply.pop("retire", None):
            w.end()
        reply["unreachable"] = bool(reply.get("unreachable")) and reply["status"] == "unavailable"
        return reply | {"lines": w.lines}

    # The connection.

    def send(self, message):
        ws = self.ws
        if ws:
            try:
                ws.send(json.dumps(message))
            except ConnectionClosed:
                pass  # the next connection sends what matters

    def send_answer(self, id):
        with self.sending:  # parts of answers do not mix
            path = self.root / "answers" / id
            data = path.read_bytes() if path.exists() else b""
            for part, at in enumerate(range(0, len(data), MIB)):
                text = base64.b64encode(data[at:at + MIB]).decode()
                self.send({"type": "answer", "id": id, "part": part, "last": at + MIB >= len(data), "data": text})

    def ask(self, op, args):
        """A request of a handler to the server."""
        message = {"method": args["name"], "args": args["named"], "positional": args["positional"]} if op == "call" else {
            "method": op, "args": args}
        with self.lock:
            self.number += 1
            number, waiting = self.number, queue.Queue()
            self.calls[number] = waiting
        self.send({"type": "call", "id": self.current[0], "call": number} | message)
        try:
            r = waiting.get(timeout=60)
        except queue.Empty:
            r = {"code": 503, "body": {"message": "the server did not answer"}}
        if op == "call":
            return {"code": r["code"], "body": r.get("body")}
        if r["code"] // 100 != 2:
            raise RuntimeError((r.get("body") or {}).get("message", f"the server answers {r['code']}"))
        return r["body"]

    def obey(self, m):
        kind = m["type"]
        if kind == "ping":
            self.send({"type": "pong", "id": m["id"]})
        elif kind == "content":
            self.take_part(m)
        elif kind == "command":
            self.take(m)
        elif kind == "cancel":
            self.end(m["id"])
        elif kind == "recorded":
            for id in [id for id in m["ids"] if self.commands.get(id)]:
                self.note(recorded=id)
                self.recorded.add(id)
                del self.commands[id]
                (self.root / "answers" / id).unlink(missing_ok=True)
        elif kind == "returned" and m["call"] in self.calls:
            self.calls.pop(m["call"]).put(m)
        elif kind == "rotate":
            self.key, request = new_key()
            self.send({"type": "renew", "request": request})
        elif kind == "certificate" and self.key:
            write(self.root / "identity.pem", self.key + m["certificate"].encode())
        elif kind == "bye":
            if m["reason"] in FINAL:
                sys.exit(f"the server does not want this agent any more: {m['message']}")
            raise ConnectionError(f"{m['reason']}: {m['message']}")

    def serve(self):
        context = trust(self.root / "ca.pem")
        context.load_cert_chain(self.root / "identity.pem")
        url = self.about["url"].rstrip("/").replace("https", "wss", 1) + "/agent/v1/subscribe"
        with connect(url, ssl=context, subprotocols=["ordain-agent.1"], max_size=4 * MIB, ping_interval=None,
                     compression=None) as ws:
            libc = "-".join(filter(None, platform.libc_ver()))
            arch = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
            ws.send(json.dumps({
                "type": "hello", "protocol": 1, "program": "examples/agent 1", "seen": self.seen,
                "machine": {"os": sys.platform, "arch": arch, "libc": libc, "pythons": ["%d.%d" % sys.version_info[:2]]},
                "running": [id for id, done in self.commands.items() if not done],
                "unrecorded": [id for id, done in self.commands.items() if done],
                "holds": sorted(p.name for p in (self.root / "contents").glob("[0-9a-f]*"))}))
            welcome, self.arriving = json.loads(ws.recv(30)), {}
            if welcome["type"] != "welcome":
                self.obey(welcome)
            self.ws = ws
            for id in [id for id, done in self.commands.items() if done]:
                self.send_answer(id)
            while True:
                self.obey(json.loads(ws.recv(3 * welcome["ping_seconds"])))

    def forever(self):
        pause = 1.0
        while True:
            began = time.monotonic()
            try:
                self.serve()
            except InvalidStatus as e:
                why = json.loads(e.response.body or b"{}")
                if why.get("reason") in FINAL:
                    sys.exit(f"the server refuses this agent: {why['message']}")
                error = e
            except (OSError, ConnectionClosed, ConnectionError, TimeoutError) as e:
                error = e
            self.ws = None
            for number in list(self.calls):
                self.calls.pop(number).put({"code": 503, "body": {"message": "the connection broke"}})
            pause = 1.0 if time.monotonic() - began > 5 else pause
            print(f"not connected: {error}", file=sys.stderr)
            time.sleep(pause * random.uniform(1, 1.5))
            pause = min(2 * pause, 60)


def trust(ca):
    """What decides about the server's certificate: the CA alone, whatever the clock of this machine shows."""
    context = ssl.create_default_context(cafile=ca if ca.stat().st_size else None)
    context.verify_flags |= 0x200000  # X509_V_FLAG_NO_CHECK_TIME
    return context


def new_key():
    command = "openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=agent -keyout - -out -"
    out = subprocess.run(command.split(), check=True, capture_output=True).stdout
    key, mark, request = out.partition(b"-----BEGIN CERTIFICATE REQUEST-----")
    return key, (mark + request).decode()


def join(root, token):
    body = token.strip().removeprefix("ordain-join.")
    parsed = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    base, (key, request) = parsed["url"].rstrip("/"), new_key()
    ca = b""
    if "ca" in parsed:
        with urllib.request.urlopen(base + "/agent/v1/ca", context=ssl._create_unverified_context(), timeout=60) as r:
            ca = r.read(MIB)
        if hashlib.sha256(ssl.PEM_cert_to_DER_cert(ca.decode())).hexdigest() != parsed["ca"]:
            sys.exit("this is not the server that the join token comes from")
    write(root / "ca.pem", ca)
    ask = json.dumps({"token": token.strip(), "request": request, "program": "examples/agent 1"}).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(base + "/agent/v1/join", ask), timeout=60,
                                    context=trust(root / "ca.pem")) as r:
            joined = json.load(r)
    except urllib.error.HTTPError as e:
        sys.exit("the server refuses the join token: " + json.load(e)["message"])
    write(root / "agent.json", json.dumps({k: joined[k] for k in ("environment", "agent", "url")}).encode())
    write(root / "identity.pem", key + joined["certificate"].encode())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--join", default=os.environ.get("ORDAIN_JOIN_TOKEN"))
    parser.add_argument("--state-dir", type=pathlib.Path, default=os.environ.get("ORDAIN_AGENT_DIR", "agent-state"))
    options = parser.parse_args()
    folder = pathlib.Path(options.state_dir).absolute()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if options.join and not (folder / "identity.pem").exists():
        join(folder, options.join)
    Agent(folder).forever()
