package yamltest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"ordain.dev/ordain/compiler/plugin/plugintest"
)

// Comparison holds what we make of texts against what PyYAML makes of them.
type Comparison struct {
	Args  []string // for ask.py
	Texts func(r *rand.Rand, n int) iter.Seq[[]byte]
	Ours  func(text []byte) Answer
	// Incomparable tells of answers that are not written alike; nil: all are.
	Incomparable func(Answer) bool
}

// WithPyYAML asks PyYAML itself about PYYAML_COUNT texts, from PYYAML_SEED on.
func (c Comparison) WithPyYAML(t *testing.T) {
	python := interpreter(t)
	count := setting(t, "PYYAML_COUNT", 3000)
	seed := setting(t, "PYYAML_SEED", time.Now().UnixNano())
	t.Logf("PYYAML_SEED=%d", seed)
	classes := map[string]int{}
	err := Ask(
		python,
		c.Args,
		c.Texts(rand.New(rand.NewPCG(uint64(seed), 0)), int(count)),
		func(text []byte, want Answer) {
			classes[want.Class]++
			c.check(t, text, want)
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("texts by what is raised: %v", classes)
}

// interpreter is one that has PyYAML: PYYAML_PYTHON, or that of a virtual environment.
func interpreter(t *testing.T) string {
	t.Helper()
	if python := os.Getenv("PYYAML_PYTHON"); python != "" {
		return python
	}
	return plugintest.Venv(t, plugintest.PyYAML)
}

func setting(t *testing.T, name string, otherwise int64) int64 {
	v := os.Getenv(name)
	if v == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

func (c Comparison) check(t *testing.T, text []byte, want Answer) {
	if c.Incomparable != nil && c.Incomparable(want) {
		return
	}
	if got := c.Ours(text); got != want {
		t.Errorf("%q\n got %s\nwant %s", text, got, want)
	}
}

// String shows an answer to people.
func (a Answer) String() string { return strings.TrimSpace(a.Class + " " + a.Message + a.Text) }

// recorded is a line of a file with answers.
type recorded struct {
	Text   string `json:"text"`
	Answer Answer `json:"answer"`
}

// Recorded compares with answers that PyYAML once gave. With PYYAML_WRITE set it
// asks for them first, and writes the file anew.
func (c Comparison) Recorded(t *testing.T, path string) {
	if os.Getenv("PYYAML_WRITE") != "" {
		c.record(t, path)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	texts, refused := 0, 0
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r recorded
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		if texts++; r.Answer.Class != "" {
			refused++
		}
		c.check(t, []byte(r.Text), r.Answer)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if texts < 300 || refused < 100 || refused == texts {
		t.Errorf("there is little to compare: %d texts, of which %d are refused", texts, refused)
	}
}

var detail = regexp.MustCompile(`'[^']*'|"[^"]*"|[0-9]+`)

// record keeps short texts, a few for each message and a few that are right.
func (c Comparison) record(t *testing.T, path string) {
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	kept := map[string]int{}
	err = Ask(interpreter(t), c.Args, c.Texts(rand.New(rand.NewPCG(1, 0)), 20000), func(text []byte, a Answer) {
		most, like := 3, detail.ReplaceAllString(a.Message, "")
		if a.Class == "" {
			most, like = 3, fmt.Sprint(len(text)) // of each length
		}
		if kept[like] == most || len(text) > 100 || !utf8.Valid(text) || c.Incomparable != nil && c.Incomparable(a) {
			return
		}
		kept[like]++
		line, err := json.Marshal(recorded{string(text), a})
		if err == nil {
			_, err = file.Write(append(line, '\n'))
		}
		if err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}
