#!/usr/bin/env python3
"""A provider whose machines are files in a folder, and an automator that notes in the file what it did.

The file of a machine has the tag as its name, so there is one machine of a tag, whatever happens and whenever.
"""

import json
import os
import sys


def answer(status, problem="", **more):
    with os.fdopen(3, "w") as out:
        json.dump({"status": status, "problem": problem, **more}, out)
    sys.exit(0)


def machine(task):
    return os.path.join(task["provider"]["fields"]["world"], task["tag"])


def create(task):
    path = machine(task)
    if task.get("replace"):
        delete_file(path)
    print("looking for a machine with the tag", flush=True)
    if not os.path.exists(path):
        print("making one", flush=True)
        # Complete or not there at all: if this process is killed here, the next attempt makes it.
        fresh = os.path.join(task["work"], "machine")
        with open(fresh, "w") as f:
            f.write(task["node"]["hostname"] + "\n")
            f.flush()
        with open(path + ".part", "w") as f:
            f.write(open(fresh).read())
        os.rename(path + ".part", path)
    answer("done", facts={"providerid": "folder-" + task["tag"]})


def confirm(task):
    if not os.path.exists(machine(task)):
        answer("failed", "there is no machine with the tag " + task["tag"])
    answer("done", addresses={"access_v4": "127.0.0.1", "bind_v4": "127.0.0.1"})


def delete_file(path):
    try:
        os.remove(path)
    except FileNotFoundError:
        pass  # somebody was here before


def delete(task):
    delete_file(machine(task))
    answer("done")


def note(task):
    with open(machine(task)) as f:
        lines = f.read().splitlines()
    line = "%s %s" % (task["action"], (task.get("service") or {}).get("name", ""))
    if line not in lines:
        with open(machine(task), "a") as f:
            f.write(line + "\n")
    answer("done")


ACTIONS = {"create": create, "confirm": confirm, "delete": delete}
ACTIONS.update({a: note for a in ("bootstrap", "install", "configure", "initialize", "start", "stop", "remove")})


def main():
    try:
        task = json.load(sys.stdin)
    except ValueError as e:
        answer("refused", "the task is not JSON: %s" % e)
    if task["protocol"] != 1:
        answer("refused", "this plug-in speaks version 1 of the protocol")
    if task["action"] not in ACTIONS:
        answer("refused", "the action %s is unknown" % task["action"])
    ACTIONS[task["action"]](task)


main()
