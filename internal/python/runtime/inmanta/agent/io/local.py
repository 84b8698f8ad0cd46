"""Files and commands of this machine, for older handlers."""

import grp
import hashlib
import os
import pwd
import shutil
import stat
import subprocess
from collections.abc import Mapping, Sequence
from typing import Optional, Union


class IOBase:
    """A machine with files and commands."""

    def __init__(self, uri: str = "local:", config: Optional[Mapping[str, Optional[str]]] = None) -> None:
        self.uri = uri
        self.config = dict(config or {})

    def is_remote(self) -> bool:
        raise NotImplementedError

    def close(self) -> None:
        """Release all resources."""


class LocalIO(IOBase):
    """This machine."""

    def is_remote(self) -> bool:
        return False

    def run(
        self,
        command: str,
        arguments: Sequence[str] = (),
        env: Optional[Mapping[str, str]] = None,
        cwd: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> tuple[str, str, int]:
        """Run a command. Returns standard output, standard error and exit status. ``env`` is added to our environment."""
        done = subprocess.run(
            [command, *arguments],
            env={**os.environ, **env} if env is not None else None,
            cwd=cwd,
            timeout=timeout,
            capture_output=True,
            stdin=subprocess.DEVNULL,
        )
        return (
            done.stdout.decode(errors="replace").strip(),
            done.stderr.decode(errors="replace").strip(),
            done.returncode,
        )

    def hash_file(self, path: str) -> str:
        with open(path, "rb") as file:
            return hashlib.sha1(file.read()).hexdigest()

    def read(self, path: str) -> str:
        with open(path, encoding="utf-8") as file:
            return file.read()

    def read_binary(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def put(self, path: str, content: Union[bytes, str]) -> None:
        with open(path, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)

    def file_exists(self, path: str) -> bool:
        return os.path.lexists(path)

    def file_stat(self, path: str) -> dict[str, Union[int, str]]:
        """Owner, group and permissions, the latter as the digits of chmod read as a decimal number."""
        found = os.stat(path)
        return {
            "owner": pwd.getpwuid(found.st_uid).pw_name,
            "group": grp.getgrgid(found.st_gid).gr_name,
            "permissions": int(format(stat.S_IMODE(found.st_mode), "o")),
        }

    def readlink(self, path: str) -> str:
        return os.readlink(path)

    def symlink(self, source: str, target: str) -> None:
        os.symlink(source, target)

    def is_symlink(self, path: str) -> bool:
        return os.path.islink(path)

    def remove(self, path: str) -> None:
        os.remove(path)

    def mkdir(self, path: str) -> None:
        os.mkdir(path)

    def rmdir(self, path: str) -> None:
        shutil.rmtree(path)

    def chown(self, path: str, user: Optional[str] = None, group: Optional[str] = None) -> None:
        os.chown(
            path,
            pwd.getpwnam(user).pw_uid if user is not None else -1,
            grp.getgrnam(group).gr_gid if group is not None else -1,
        )

    def chmod(self, path: str, permissions: str) -> None:
        os.chmod(path, int(permissions, 8))
