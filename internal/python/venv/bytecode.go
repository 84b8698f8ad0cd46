package venv

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
)

// compileScript compiles the pairs of files on its standard input. It runs no code of
// packages. The name of the source is not part of the bytecode: Python fills it in when it
// imports. The bytecode is not compared with its source when it is imported: the Maker
// does that for all files of an environment.
const compileScript = `
import py_compile, sys
for pair in sys.stdin.buffer.read().decode("utf-8", "surrogateescape").split("\0\0"):
    source, _, target = pair.partition("\0")
    if target:
        try:
            py_compile.compile(source, cfile=target, dfile="<package>", doraise=True,
                               invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
        except Exception:
            pass # such as the template of a source; importing it fails as well
`

// compileTime is how long the compiler of bytecode may take.
const compileTime = 3 * time.Minute

// compile puts the bytecode of all sources into an environment, so that its processes,
// which cannot write there, start quickly. Bytecode is kept by the content of its source,
// so that it is compiled once for all environments.
func (m *Maker) compile(ctx context.Context, dir string, i Interpreter, files []entry) {
	below := strings.TrimPrefix(sitePackages("", i), "/") + "/"
	kept := filepath.Join(m.c.CacheDir, "bytecode", i.Version)
	work, err := os.MkdirTemp(m.c.CacheDir, "bytecode.new-*")
	if err != nil {
		return
	}
	defer os.RemoveAll(work)
	ending := ".cpython-" + strings.ReplaceAll(i.Minor, ".", "") + ".pyc"
	type job struct{ sum, fresh, target string }
	var jobs []job
	var input []string
	for _, f := range files {
		if f.mode.IsRegular() && f.sum != "" && strings.HasPrefix(f.path, below) && filepath.Ext(f.path) == ".py" {
			source := filepath.Join(dir, f.path)
			name := strings.TrimSuffix(filepath.Base(source), ".py")
			target := filepath.Join(filepath.Dir(source), "__pycache__", name+ending)
			if content := readKept(kept, f.sum); content != nil {
				writeBytecode(target, content)
				continue
			}
			fresh := filepath.Join(work, f.sum)
			jobs = append(jobs, job{f.sum, fresh, target})
			input = append(input, source+"\x00"+fresh)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, compileTime)
	defer cancel()
	var all sync.WaitGroup
	workers := min(runtime.NumCPU(), 4)
	for w := range workers {
		var share []string
		for n := w; n < len(input); n += workers {
			share = append(share, input[n])
		}
		if len(share) > 0 {
			all.Go(func() {
				cmd := exec.CommandContext(ctx, i.Path, "-I", "-S", "-B", "-c", compileScript)
				cmd.Env, cmd.Dir = []string{}, work
				cmd.Stdin = strings.NewReader(strings.Join(share, "\x00\x00"))
				_ = cmd.Run() // what is missing, Python compiles when it is imported
			})
		}
	}
	all.Wait()
	for _, j := range jobs {
		if content, err := os.ReadFile(j.fresh); err == nil {
			writeBytecode(j.target, content)
			_ = writeWhole(keptFile(kept, j.sum), append([]byte(hashOf(content)), content...))
		}
	}
}

func writeBytecode(target string, content []byte) {
	if os.MkdirAll(filepath.Dir(target), 0o755) == nil {
		_ = os.WriteFile(target, content, fs.FileMode(0o644))
	}
}

func keptFile(kept, sum string) string { return filepath.Join(kept, sum[:2], sum) }

// readKept returns the bytecode of a source, nil if there is none or it is damaged.
func readKept(kept, sum string) []byte {
	const length = 2 * sha256.Size
	text, err := os.ReadFile(keptFile(kept, sum))
	if err != nil || len(text) < length || !bytes.Equal(text[:length], []byte(hashOf(text[length:]))) {
		return nil
	}
	return text[length:]
}

func hashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
