#!/usr/bin/env python3
# A remote agent for Ordain in Python: docs/agent-protocol.md from the other side. It needs the package `websockets` and
# openssl, and carries out one command after the other. ORDAIN_AGENT_DIR is the folder for what it keeps,
# ORDAIN_JOIN_TOKEN the token for its first start. It has guard clauses on one line, to stay below 300 lines.
import base64, fcntl, hashlib, json, os, pathlib, platform, queue, random, shutil, ssl, struct, subprocess, sys
import threading, time, urllib.error, urllib.request, zipfile
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

MIB = 1 << 20
PYTHON = "%d.%d" % sys.version_info[:2]
FINAL = {"certificate", "expired", "revoked", "removed"}  # reasons after which the agent ends

class Refused(Exception): """The command cannot be carried out."""

def line(level, text):
    return {"level": level, "msg": text, "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}

def said(status, text):
    return {"status": status, "change": "nochange", "lines": [line("ERROR", text)], "duration_ms": 0}

def after(seconds, do, *args):
    timer = threading.Timer(seconds, do, args)
    timer.daemon = True
    timer.start()
    return timer

def write(path, data):  # for its owner alone, and so that it is on the disk whole or not at all
    temp = path.with_name("." + path.name)
    with open(os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as f:
        f.write(data), f.flush()
        os.fsync(f.fileno())
    temp.rename(path)

class Worker:
    """A process with the handlers of one blueprint; see internal/python/worker/PROTOCOL.md."""

    def __init__(self, folder, variables, ask):
        self.variables, self.ask, self.next, (read, out), (into, write_) = variables, ask, 0, os.pipe(), os.pipe()
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (into, out)]  # so that 3 and 4 are free
        env = {k: os.environ[k] for k in ("PATH", "HOME", "LANG", "TZ", "TMPDIR") if k in os.environ} | variables
        options = json.dumps({"path": [str(folder / "code"), str(folder / "site")]})
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-X", "utf8", folder / "runtime/ordain_worker/__main__.py", "handler", options],
            env=env, preexec_fn=lambda: [os.dup2(fd, n) for fd, n in zip(high, (3, 4))], pass_fds=(3, 4),
            stdin=subprocess.DEVNULL, stdout=sys.stderr, start_new_session=True)
        for fd in (into, out, *high): os.close(fd)
        self.reader, self.writer = os.fdopen(read, "rb"), os.fdopen(write_, "wb")

    def send(self, frame):
        data = json.dumps(frame).encode()
        self.writer.write(struct.pack(">I", len(data)) + data)
        self.writer.flush()

    def call(self, op, args, timeout):
        """Make a request, answer those that come back, and collect what the handler logs."""
        self.next, self.lines, timer = self.next + 1, [], after(timeout, self.end)
        try:
            self.send({"id": self.next, "op": op, "args": args})
            while len(head := self.reader.read(4)) == 4:
                frame = json.loads(self.reader.read(struct.unpack(">I", head)[0]))
                if "err" in frame: raise RuntimeError(frame["err"]["message"])
                if "re" in frame: return frame["ok"]
                if "id" in frame:
                    try:
                        self.send({"re": frame["id"], "ok": self.ask(frame["op"], frame["args"])})
                    except RuntimeError as e:
                        self.send({"re": frame["id"], "err": {"kind": "unavailable", "message": str(e)}})
                elif frame["op"] == "log": self.lines.append(frame["args"])
        except OSError: pass
        finally: timer.cancel()
        raise RuntimeError("its process ended, or it took too long")

    def end(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, 9)
            self.process.wait()

class Agent:
    def __init__(self, root):
        self.root, self.about = root, json.loads((root / "agent.json").read_text())
        for name in ("contents", "answers", "made"): (root / name).mkdir(mode=0o700, exist_ok=True)
        self.commands, self.recorded, self.seen = {}, set(), 0  # id → whether it is answered, until that is recorded
        self.todo, self.ended, self.id, self.busy = queue.Queue(), set(), None, None  # id, busy: of the current command
        self.workers, self.calls, self.number, self.arriving, self.ws = {}, {}, 0, {}, None
        self.lock, self.sending = threading.Lock(), threading.Lock()
        self.journal = open(root / "journal", "a+")
        self.journal.seek(0)
        for entry in self.journal.read().splitlines():
            entry = json.loads(entry) if entry.endswith("}") else {}  # a crash may cut the last one off
            self.seen = max(self.seen, entry.get("seq", 0))
            if "recorded" in entry:
                self.recorded.add(entry["recorded"])
                self.commands.pop(entry["recorded"], None)
            elif "id" in entry: self.commands[entry["id"]] = True
        for id in self.commands:
            if not (root / "answers" / id).exists():
                self.keep(id, said("lost", "The agent ended while it carried out this command."))
        threading.Thread(target=self.work, daemon=True).start()

    # What lies on the disk.

    def note(self, **entry):
        print(json.dumps(entry), file=self.journal, flush=True)
        os.fsync(self.journal.fileno())

    def keep(self, id, answer):
        data = json.dumps(answer).encode()
        if len(data) > 64 * MIB:
            data = json.dumps(said("failed", f"The answer has {len(data)} bytes, which is too much.")).encode()
        write(self.root / "answers" / id, data)

    def content(self, hash):
        path = self.root / "contents" / hash
        if not path.exists(): raise Refused(f"the content {hash} is missing")
        if hashlib.sha256(path.read_bytes()).hexdigest() != hash:
            path.unlink()
            self.send({"type": "stored", "hash": hash, "error": "it was damaged on the agent's disk"})
            raise Refused(f"the content {hash} was damaged on the agent's disk")
        return path

    def take_part(self, m):
        parts, error = self.arriving.setdefault(m["hash"], bytearray()), {}
        if m["offset"] != len(parts): error = {"error": "its parts did not arrive in order"}
        parts += base64.b64decode(m["data"])
        if not m["last"] and not error: return
        del self.arriving[m["hash"]]
        if not error and (len(parts) != m["size"] or hashlib.sha256(parts).hexdigest() != m["hash"]):
            error = {"error": "it does not match its hash"}
        if not error: write(self.root / "contents" / m["hash"], parts)
        self.send({"type": "stored", "hash": m["hash"]} | error)

    # Commands.

    def take(self, m):
        id = m["id"]
        if id in self.commands: return self.send_answer(id) if self.commands[id] else None
        self.commands[id] = False
        self.note(id=id, seq=m["seq"])
        self.seen = max(self.seen, m["seq"])
        if id in self.recorded: return self.finish(id, said("lost", "This command was carried out before."))
        if m["deadline_ms"]: self.todo.put(m)
        after(m["deadline_ms"] / 1000, self.late, id)

    def late(self, id):
        self.finish(id, said("late", "The command was not done within its deadline."))
        self.end(id)

    def end(self, id):
        self.ended.add(id)
        if self.id == id and self.busy: self.busy.end()

    def finish(self, id, answer):
        with self.lock:
            if self.commands.get(id, True): return
            self.keep(id, answer)
            self.commands[id] = True
        self.send_answer(id)

    def work(self):
        while m := self.todo.get():
            began, self.id = time.monotonic(), m["id"]
            try:
                if self.id in self.ended:
                    answer = said("cancelled", "The command was cancelled before it began.")
                else: answer = self.carry_out(m["action"], m["payload"], m["needs"])
            except Refused as e: answer = said("refused", f"The command cannot be carried out: {e}.")
            except Exception as e: answer = said("failed", f"The agent could not do this: {e}")
            answer["duration_ms"] = int((time.monotonic() - began) * 1000)
            self.busy = None
            self.finish(m["id"], answer)

    def carry_out(self, action, payload, needs):
        for hash in needs:
            if not (self.root / "contents" / hash).exists(): raise Refused(f"the content {hash} is missing")
        if action in ("deploy", "dryrun", "facts"):
            return self.run(action, self.worker(payload), payload["task"])
        if action == "forget":
            for hash in payload["hashes"]: (self.root / "contents" / hash).unlink(missing_ok=True)
            for key in [key for key, (uses, _) in self.workers.items() if uses & set(payload["hashes"])]:
                self.workers.pop(key)[1].end()
                shutil.rmtree(self.root / "made" / key)
        elif action == "prepare": self.worker(payload)
        else: raise Refused(f"this agent does not know the action {action!r}")
        return {"status": "done", "change": "nochange"}

    def worker(self, payload):
        """The process for a blueprint with these variables. What it is made of is checked and unpacked each time."""
        b, variables = payload["blueprint"], payload.get("variables") or {}
        key = hashlib.sha256(json.dumps(b, sort_keys=True).encode()).hexdigest()[:40]
        if key in self.workers:
            known = self.workers[key][1]
            if known.process.poll() is None and known.variables == variables: return known
            known.end()
        if b["python"] != PYTHON: raise Refused(f"this agent has Python {PYTHON}, not {b['python']}")
        folder, wheels = self.root / "made" / key, [w["hash"] for w in b.get("wheels") or ()]
        shutil.rmtree(folder, ignore_errors=True)
        for file, hash in b["files"].items():
            path = folder / "code" / file
            if ".." in path.parts or not path.is_relative_to(folder / "code"):
                raise Refused(f"the file {file!r} lies outside of the code folder")
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self.content(hash), path)
        for name, hash in [("runtime", b["runtime"]), *(("site", hash) for hash in wheels)]:
            zipfile.ZipFile(self.content(hash)).extractall(folder / name)
        for data in folder.glob("site/*.data/*lib"): shutil.copytree(data, folder / "site", dirs_exist_ok=True)
        self.busy = w = Worker(folder, variables, self.ask)
        secrets = [k for k, v in variables.items() if k not in (payload.get("plain") or ()) and len(v) >= 6]
        modules = [name for name, file in b["modules"].items() if file.startswith("inmanta_plugins/")]
        w.call("load", {"modules": modules, "secrets": secrets}, 600)
        self.workers[key] = {*b["files"].values(), *wheels, b["runtime"]}, w
        return w

    def run(self, action, w, t):
        r, self.busy, reply = t["resource"], w, {"status": "failed", "change": "nochange"}
        try:
            reply |= w.call("run", {
                "action": action, "action_id": self.id, "id": f"{r['id']},v={r['version']}", "reason": t["reason"],
                "agent": r["id"].split("[", 1)[1].split(",", 1)[0], "environment": self.about["environment"],
                "attributes": r["attributes"], "requires": r["requires"], "dependencies": t["requires"],
                "dependency_changed": t["dependency_changed"], "lane": 0}, t["timeout_ms"] / 1000 or 600)
        except RuntimeError as e: w.lines.append(line("CRITICAL", f"The handler did not end as it should: {e}"))
        if reply.pop("retire", None): w.end()
        return reply | {"lines": w.lines, "unreachable": bool(reply.get("unreachable"))}

    def ask(self, op, args):
        """Answer a handler's request, by a call to the server."""
        call = {"method": op, "args": args} if op != "call" else {
            "method": args["name"], "args": args["named"], "positional": args["positional"]}
        self.number += 1
        waiting = self.calls[self.number] = queue.Queue()
        self.send({"type": "call", "id": self.id, "call": self.number} | call)
        r = waiting.get()
        if op != "call" and r["code"] // 100 != 2: raise RuntimeError(f"the server answers {r['code']}")
        return r["body"] if op != "call" else {"code": r["code"], "body": r.get("body")}

    # The connection.

    def send(self, message):
        if ws := self.ws:
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

    def obey(self, m):
        match m["type"]:
            case "ping": self.send({"type": "pong", "id": m["id"]})
            case "content": self.take_part(m)
            case "command": self.take(m)
            case "cancel": self.end(m["id"])
            case "recorded":
                for id in [id for id in m["ids"] if self.commands.get(id)]:
                    self.note(recorded=id)
                    self.recorded.add(id)
                    del self.commands[id]
                    (self.root / "answers" / id).unlink(missing_ok=True)
            case "returned" if m["call"] in self.calls: self.calls.pop(m["call"]).put(m)
            case "rotate":
                self.key, request = new_key()
                self.send({"type": "renew", "request": request})
            case "certificate": write(self.root / "identity.pem", self.key + m["certificate"].encode())
            case "bye" if m["reason"] in FINAL:
                sys.exit(f"the server does not want this agent any more: {m['message']}")
            case "bye": raise ConnectionError(f"{m['reason']}: {m['message']}")

    def serve(self):
        context = trust(self.root / "ca.pem")
        context.load_cert_chain(self.root / "identity.pem")
        url = self.about["url"].rstrip("/").replace("https", "wss", 1) + "/agent/v1/subscribe"
        with connect(url, ssl=context, subprotocols=["ordain-agent.1"], max_size=4 * MIB, ping_interval=None,
                     compression=None) as ws:
            arch = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
            ws.send(json.dumps({
                "type": "hello", "protocol": 1, "program": "examples/agent 1", "seen": self.seen, "machine": {
                    "os": sys.platform, "arch": arch, "libc": "-".join(platform.libc_ver()), "pythons": [PYTHON]},
                "running": [id for id, done in self.commands.items() if not done],
                "unrecorded": [id for id, done in self.commands.items() if done],
                "holds": [path.name for path in (self.root / "contents").glob("[0-9a-f]*")]}))
            welcome, self.arriving = json.loads(ws.recv(30)), {}
            self.obey(welcome)  # which may be a bye
            self.ws, self.pause = ws, 1
            for id in [id for id, done in self.commands.items() if done]: self.send_answer(id)
            while True: self.obey(json.loads(ws.recv(3 * welcome["ping_seconds"])))

    def forever(self):
        self.pause = 1
        while True:
            try:
                self.serve()
            except (OSError, ConnectionClosed, InvalidStatus) as error:
                self.ws, body = None, getattr(getattr(error, "response", None), "body", None)
                if body and body.startswith(b"{") and json.loads(body).get("reason") in FINAL:
                    sys.exit(f"the server refuses this agent: {json.loads(body)['message']}")
                for number in list(self.calls):
                    self.calls.pop(number).put({"code": 503, "body": {"message": "the connection broke"}})
                print(f"not connected: {error}", file=sys.stderr)
            time.sleep(self.pause * random.uniform(1, 1.5))
            self.pause = min(2 * self.pause, 60)

def trust(ca):  # decides about the server's certificate, whatever the clock of this machine shows
    context = ssl.create_default_context(cafile=ca if ca.stat().st_size else None)
    context.verify_flags |= 0x200000  # X509_V_FLAG_NO_CHECK_TIME
    return context

def new_key():
    command = "openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=agent -keyout - -out -"
    out = subprocess.run(command.split(), check=True, capture_output=True).stdout
    key, mark, request = out.partition(b"-----BEGIN CERTIFICATE REQUEST-----")
    return key, (mark + request).decode()

def join(root, token):
    body = token.removeprefix("ordain-join.")
    parsed = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    base, (key, request), ca = parsed["url"].rstrip("/"), new_key(), ""
    if "ca" in parsed:
        with urllib.request.urlopen(base + "/agent/v1/ca", context=ssl._create_unverified_context(), timeout=60) as r:
            ca = r.read(MIB).decode()
        if hashlib.sha256(ssl.PEM_cert_to_DER_cert(ca)).hexdigest() != parsed["ca"]:
            sys.exit("this is not the server that the join token comes from")
    write(root / "ca.pem", ca.encode())
    ask = json.dumps({"token": token, "request": request, "program": "examples/agent 1"}).encode()
    try:
        with urllib.request.urlopen(base + "/agent/v1/join", ask, 60, context=trust(root / "ca.pem")) as r:
            joined = json.load(r)
    except urllib.error.HTTPError as e:
        sys.exit("the server refuses the join token: " + json.load(e)["message"])
    write(root / "agent.json", json.dumps({k: joined[k] for k in ("environment", "agent", "url")}).encode())
    write(root / "identity.pem", key + joined["certificate"].encode())

if __name__ == "__main__":
    folder = pathlib.Path(os.environ["ORDAIN_AGENT_DIR"]).absolute()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not (folder / "identity.pem").exists(): join(folder, os.environ["ORDAIN_JOIN_TOKEN"].strip())
    Agent(folder).forever()
