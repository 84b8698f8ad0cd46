"""Runs inmanta-cli many times. What takes most of its time, importing it, is done once.

Each line of standard input is a JSON object with the arguments and the folder of one run: a process of its own, forked
after the imports. A line with its exit status and its output answers.
"""

import json
import os
import sys
import tempfile
import traceback

from inmanta.main import main

for line in sys.stdin:
    job = json.loads(line)
    with tempfile.TemporaryFile() as out:
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                os.dup2(out.fileno(), 1)
                os.dup2(out.fileno(), 2)
                os.chdir(job["folder"])
                os.environ.update(HOME=job["folder"], COLUMNS="200")
                sys.argv = ["inmanta-cli", *job["args"]]
                main()
                status = 0
            except SystemExit as e:
                status = e.code if isinstance(e.code, int) else int(e.code is not None)
            except BaseException:
                traceback.print_exc()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        out.seek(0)
        print(json.dumps({"status": status, "output": out.read().decode()}), flush=True)
