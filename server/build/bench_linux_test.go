package build_test

import (
	"os"
	"path/filepath"
	"testing"

	"ordain.dev/ordain/compiler/plugin/plugintest"
	"ordain.dev/ordain/server/build"
)

const withStd = `
-- project.yml --
name: test
modulepath: libs
-- libs/.keep --
-- templates/hello.j2 --
hello {{ name }}
-- main.cf --
import std
typedef positive as int matching std::validate_type("pydantic.PositiveInt", self)
entity Host:
    string name
    positive port
end
implement Host using std::none
h = Host(name="one", port=80)
name = "world"
std::print(std::template("/hello.j2"))
`

// A compile of a project that needs std's pydantic and jinja, as the server
// runs it: with a worker of its own, and with a copy of one that waits.
func BenchmarkCompile(b *testing.B) {
	for n := range 4 {
		warm, free := n&1 != 0, n&2 != 0
		name := "cold"
		if warm {
			name = "warm"
		}
		if free {
			name += ", not isolated"
		}
		b.Run(name, func(b *testing.B) {
			s := openShop(b, "", func(c *build.Config) {
				// Not as another user, who could not read the virtual environment that the benchmark shares.
				c.Isolation.FirstUser = 0
				c.Isolation.Read = []string{filepath.Dir(filepath.Dir(plugintest.Venv(b, plugintest.Newest())))}
				if free {
					c.Isolation = nil
				}
				if !warm {
					c.Warm.MemoryMax = 1
				}
			})
			s.write(withStd)
			link := s.layout.Environment(s.job.Environment.ID).CompilerVenvLink()
			if err := os.RemoveAll(link); err != nil {
				b.Fatal(err)
			}
			if err := os.Symlink(filepath.Dir(filepath.Dir(plugintest.Venv(b, plugintest.Newest()))),
				link); err != nil {
				b.Fatal(err)
			}
			s.compile()
			if c := s.next(); c.ready != warm {
				b.Fatalf("%+v", c)
			}
			for b.Loop() {
				s.compile()
			}
		})
	}
}
