"""Starts a worker: python -I -X utf8 …/ordain_worker/__main__.py ROLE [OPTIONS]

The interpreter is isolated (-I), so the environment of the caller does not
affect imports. sys.path is set here, with the runtime first.
OPTIONS is a JSON object: {"path": [folders], "memory": bytes, "data": bytes,
"file_size": bytes, "tasks": number, "tasks_alone": flag, "bytecode": folder}; see
limits.py and bytecode.py.
"""

import os
import site
import sys


def main() -> None:
    role = sys.argv[1]
    runtime = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path.insert(0, runtime)
    from ordain_worker._json import decode

    options: dict = decode(sys.argv[2].encode()) if len(sys.argv) > 2 else {}  # type: ignore
    front = [runtime, *(options.get("path") or ())]
    foreign = [entry for entry in front[1:] if entry not in sys.path]
    sys.path[:] = front + [entry for entry in sys.path if entry not in front]
    for folder in foreign:  # packages of another environment, whose .pth files count too
        site.addsitedir(folder)
    if foreign:  # for programs that modules start with this interpreter
        os.environ["PYTHONPATH"] = os.pathsep.join(foreign)
    sys.argv[:] = ["ordain-worker"]

    # Programs that the code starts must not inherit the pipes.
    os.set_inheritable(3, False)
    os.set_inheritable(4, False)
    from ordain_worker import limits

    limits.apply(options)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True, errors="backslashreplace")  # type: ignore[union-attr]
    import faulthandler

    faulthandler.enable(all_threads=False)  # prints the stack if the process crashes in C code

    from ordain_worker import bytecode
    from ordain_worker.frames import Channel

    bytecode.keep_in(options.get("bytecode") or os.path.join(os.path.dirname(runtime), "__pycache__"))
    if role == "compile":
        from ordain_worker import compile_role as module
    elif role == "handler":
        from ordain_worker import handler_role as module  # type: ignore[no-redef]
    elif role == "template":
        from ordain_worker import template_role as module  # type: ignore[no-redef]
    else:
        sys.exit(f"ordain-worker: unknown role {role!r}: want compile, handler or template")
    channel = Channel(3, 4)
    channel.hello(role)
    module.main(channel)


if __name__ == "__main__":
    main()
