package eval_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"ordain.dev/ordain/compiler/eval"
	"ordain.dev/ordain/compiler/syntax"
)

// infrastructure writes a model of n resources: hosts with files that require
// one another, found by index, each with an implementation and a format.
func infrastructure(n int) string {
	var b strings.Builder
	b.WriteString(`entity Host: string name end
entity File:
  string path
  string content
  int mode = 644
  bool purged = false
  string? owner = null
end
Host.files [0:] -- File.host [1]
index Host(name)
index File(host, path)
implementation none for std::Entity: end
implementation content for File:
  self.content = "{{ self.path }} on {{ self.host.name }}"
end
implement Host using none
implement File using none, content
`)
	for h := range n / 100 {
		fmt.Fprintf(&b, "h%d = Host(name=\"h%d\")\n", h, h)
		for f := range 99 {
			fmt.Fprintf(&b, "f%d_%d = File(host=h%d, path=\"/etc/f%d\"", h, f, h, f)
			if f > 0 {
				fmt.Fprintf(&b, ", requires=f%d_%d", h, f-1)
			}
			b.WriteString(")\n")
		}
	}
	return b.String()
}

func BenchmarkResources(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			f, err := syntax.Parse(syntax.FileInfo{Path: "main.cf", Namespace: "__config__"}, []byte(infrastructure(n)))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				r := eval.Compile(context.Background(), eval.Input{Files: []*syntax.File{f}})
				if r.Err != nil || len(r.Instances) != n {
					b.Fatal(len(r.Instances), r.Err)
				}
			}
		})
	}
}
