"""The small modules: configuration, finalizers, clients, plug-in decorators, falling back."""

import os
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from inmanta.ast import CompilerException
from inmanta.compiler import Finalizers, finalizer
from inmanta.config import Config, Option, is_bool, is_int, is_list, is_lower_bounded_int, is_map
from inmanta.plugins import PluginMeta, deprecated, plugin
from inmanta.protocol import endpoints
from inmanta.protocol.common import Result


class Configuration(unittest.TestCase):
    def setUp(self) -> None:
        self.addCleanup(Config._reset)

    def test_values(self) -> None:
        Config.load_config_from_dict({"config": {"state-dir": "/x", "port": "7"}})
        self.assertEqual(Config.get("config", "state_dir"), "/x")
        self.assertEqual(Config.get("config", "absent", "standard"), "standard")
        port = Option("config", "port", 1, "a port", is_int)
        self.assertEqual((port.get(), Config.get("config", "port")), (7, 7))
        with mock.patch.dict(os.environ, {"INMANTA_CONFIG_PORT": "8"}):
            self.assertEqual(port.get(), 8)

    def test_bounds(self) -> None:
        port = is_lower_bounded_int(1)
        self.assertEqual(port("7"), 7)
        with self.assertRaisesRegex(ValueError, "lower than 1"):
            port(0)

    def test_validators(self) -> None:
        self.assertEqual(
            (is_bool("Yes"), is_bool(False), is_list("a, b,"), is_map("a=1, b=2")),
            (True, False, ["a", "b"], {"a": "1", "b": "2"}),
        )
        with self.assertRaises(ValueError):
            is_bool("perhaps")


class AtTheEnd(unittest.TestCase):
    def test_all_finalizers_run_and_the_problems_are_raised(self) -> None:
        self.addCleanup(Finalizers.reset_finalizers)
        ran = []

        @finalizer
        def bad() -> None:
            raise KeyError("first")

        @finalizer
        def good() -> None:
            ran.append(1)

        with (
            self.assertLogs("inmanta.compiler"),
            self.assertRaisesRegex(CompilerException, "^Finalizer failed: 'first'$"),
        ):
            Finalizers.call_finalizers()
        self.assertEqual(ran, [1])


class Clients(unittest.TestCase):
    def test_without_an_answer(self) -> None:
        with self.assertRaises(ConnectionRefusedError):
            endpoints.SyncClient("agent").get_facts(tid="x")

    def test_with_one(self) -> None:
        self.addCleanup(endpoints.answer_with, None)
        endpoints.answer_with(lambda method, kwargs: Result(200, {"data": [method, kwargs]}))
        result = endpoints.SyncClient("agent").get_facts(tid="x")
        self.assertEqual((result.code, result.get_result()), (200, {"data": ["get_facts", {"tid": "x"}]}))


class Decorators(unittest.TestCase):
    def test_plugin(self) -> None:
        def f(x: "int") -> "int":
            return x

        f.__module__ = "inmanta_plugins.t.sub"
        self.assertIs(deprecated(plugin("other", allow_unknown=True)(f), replaced_by="t::new"), f)
        made = PluginMeta.get_functions()["t::sub::other"]
        self.assertTrue(made.deprecated)
        self.assertTrue(made().is_accept_unknowns())
        made.call = staticmethod(lambda x: x + 1)
        self.assertEqual(made()(1), 2)
        PluginMeta.clear("t")
        self.assertNotIn("t::sub::other", PluginMeta.get_functions())

    def test_outside_of_a_module(self) -> None:
        with self.assertRaisesRegex(Exception, "inmanta_plugins"):
            plugin(lambda: None)


class Fallback(unittest.TestCase):
    """An installed inmanta-core answers for what is not here, and for nothing else."""

    def run_with(self, files: dict[str, str], program: str) -> str:
        runtime = os.path.dirname(os.path.dirname(os.path.abspath(endpoints.__file__))).rpartition(os.sep)[0]
        with tempfile.TemporaryDirectory() as site:
            for name, text in files.items():
                path = os.path.join(site, "inmanta", name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w") as file:
                    file.write(text)
            start = f"import sys; sys.path[:0] = [{runtime!r}, {site!r}]\n"
            done = subprocess.run([sys.executable, "-I", "-c", start + program], capture_output=True, text=True)
            return done.stdout.strip() or done.stderr.strip().splitlines()[-1]

    def test_installed(self) -> None:
        core = {
            "__init__.py": "raise SystemExit('the installed core was imported')",
            "util/__init__.py": "def rare(): return 'rare'",
            "rarer.py": "name = 'rarer'",
        }
        self.assertEqual(
            self.run_with(core, "from inmanta.util import rare, hash_file; print(rare(), hash_file(b'')[:4])"),
            "rare da39",
        )
        self.assertEqual(self.run_with(core, "import inmanta.rarer; print(inmanta.rarer.name)"), "rarer")

    def test_submodules(self) -> None:
        core = {
            "__init__.py": "raise SystemExit('the installed core was imported')",
            "ast/rare.py": "from inmanta.ast import CompilerException, Rarer\nclass Rare(CompilerException, Rarer): pass",
            "ast/__init__.py": "from inmanta.ast import beside\nclass Rarer: pass",
            "ast/beside.py": "",
            "agent/rare.py": "name = 'agent'",
            "agent/handler.py": "raise SystemExit('ours goes first')",
            "agent/io/rare.py": "name = 'io'",
            "execute/rare.py": "name = 'execute'",
            "protocol/rare.py": "name = 'protocol'",
            "deep/__init__.py": "",
            "deep/rare.py": "name = 'deep'",
        }
        self.assertEqual(
            self.run_with(
                core,
                "from inmanta.ast.rare import Rare; import inmanta.ast; print(issubclass(Rare, inmanta.ast.CompilerException))",
            ),
            "True",
        )
        for package in ("agent", "agent.io", "execute", "protocol", "deep"):
            with self.subTest(package):
                self.assertEqual(
                    self.run_with(core, f"from inmanta.{package}.rare import name; print(name)"),
                    package.rpartition(".")[2],
                )
                self.assertIn(
                    "No module named", self.run_with({}, f"from inmanta.{package}.rare import name; print(name)")
                )
        self.assertEqual(self.run_with(core, "import inmanta.agent.handler; print(1)"), "1")

    def test_all_names(self) -> None:
        core = {
            "__init__.py": "",
            "config.py": "rare = 1\nclass Option: pass\n_private = 2",
            "rare.py": "from inmanta.config import *",
        }
        self.assertEqual(
            self.run_with(
                core,
                "import inmanta.rare as r, inmanta.config as c; print(r.rare, r.Option is c.Option, hasattr(r, '_private'))",
            ),
            "1 True False",
        )
        self.assertEqual(
            self.run_with({}, "from inmanta.config import *; print(Option.__name__, 'rare' in globals())"),
            "Option False",
        )

    def test_a_twin_that_does_not_load(self) -> None:
        core = {
            "__init__.py": "",
            "config.py": "rare = 1\nfrom inmanta.const import no_such_name",
            "const.py": "x = no_such_name",
            "util/__init__.py": "raise KeyError('x')",
        }
        for module in ("config", "const", "util"):
            with self.subTest(module):
                program = f"import sys, inmanta.{module} as m; print(hasattr(m, 'rare'), hasattr(m, 'rare'), any('core_fallback' in each for each in sys.modules))"
                self.assertEqual(self.run_with(core, program), "False False False")

    def test_a_worker_starts_the_same(self) -> None:
        core = {
            f"{name}__init__.py": "" for name in ("", "agent/", "ast/", "compiler/", "execute/", "protocol/", "util/")
        }
        core |= {"ast/export.py": "", "protocol/exceptions.py": "", "agent/agent_new.py": ""}
        start = (
            "from ordain_worker import bytecode, compile_role, frames, limits, loading\n"
            "from inmanta import compiler, config, module, plugins, resources\n"
            "from inmanta.protocol import endpoints\n"
            "print(*sorted(sys.modules), [n for n, m in sys.modules.items() if n.startswith('inmanta') and len(getattr(m, '__path__', '1')) > 1])"
        )
        alone, beside = self.run_with({}, start), self.run_with(core, start)
        self.assertTrue(alone.endswith(" []"), alone)
        self.assertEqual(alone.partition("[")[0], beside.partition("[")[0])
        for name in ("inmanta.agent", "inmanta.agent.agent", "inmanta.protocol.exceptions", "http"):
            self.assertNotIn(name, alone.split())

    def test_not_installed(self) -> None:
        self.assertIn(
            "cannot import name 'rare' from 'inmanta.util'", self.run_with({}, "from inmanta.util import rare")
        )
        self.assertIn("No module named 'inmanta.rarer'", self.run_with({}, "import inmanta.rarer"))
        self.assertIn(
            "Ordain's inmanta.util has no 'rare'", self.run_with({}, "import inmanta.util; inmanta.util.rare")
        )
