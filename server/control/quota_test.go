package control_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"ordain.dev/ordain/compiler/export"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/control"
)

// quota sets one quota of the stage's project.
func (s *stage) quota(kind intent.QuotaKind, most int64) {
	s.t.Helper()
	if err := s.SetQuota(s.t.Context(), s.environment().ProjectID, intent.Quota{kind: most}); err != nil {
		s.t.Fatal(err)
	}
}

// refusedByQuota checks that an error tells people what is used up and who can change that.
func refusedByQuota(t *testing.T, err error, words ...string) {
	t.Helper()
	if !fault.Is(err, fault.Forbidden) {
		t.Fatalf("the quota lets it through: %v", err)
	}
	for _, word := range append(words, "administrator of the server", "ordain project quota p --") {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the refusal does not say %q: %v", word, err)
		}
	}
}

// A project may have three environments. Ten people create one at the same moment: two of them get it. Nor can one be
// moved into the project.
func TestQuotaOfEnvironments(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.quota(intent.QuotaEnvironments, 3)
	project := s.environment().ProjectID
	create := func(in intent.ProjectID, name string) (intent.Environment, error) {
		return s.CreateEnvironment(t.Context(), control.NewEnvironment{
			Environment: intent.Environment{ProjectID: in, Name: name},
		})
	}
	var all sync.WaitGroup
	var made atomic.Int32
	for i := range 10 {
		all.Go(func() {
			if _, err := create(project, fmt.Sprint("e", i)); err == nil {
				made.Add(1)
			}
		})
	}
	all.Wait()
	if made.Load() != 2 {
		t.Errorf("%d environments were created beside the first, want 2", made.Load())
	}
	_, err := create(project, "one more")
	refusedByQuota(t, err, "a quota of 3 for environments and uses 3", "would make it 4")

	other, err := s.CreateProject(t.Context(), intent.Project{Name: "other"})
	if err != nil {
		t.Fatal(err)
	}
	moves, err := create(other.ID, "moves")
	if err != nil {
		t.Fatal(err)
	}
	moves.ProjectID = project
	_, err = s.UpdateEnvironment(t.Context(), moves)
	refusedByQuota(t, err, "environments")
	s.quota(intent.QuotaEnvironments, 4)
	if _, err := s.UpdateEnvironment(t.Context(), moves); err != nil {
		t.Errorf("there is room: %v", err)
	}
}

// exports makes the model have so many resources from now on.
func (s *stage) exports(n int) {
	s.parts.mu.Lock()
	defer s.parts.mu.Unlock()
	s.parts.exported = []export.Resource{}
	for i := range n {
		s.parts.exported = append(s.parts.exported, export.Resource{
			ID:         intent.ResourceID{Type: "lab::Note", Agent: "a", Attribute: "n", Value: fmt.Sprint(i)},
			Attributes: []byte(`{}`), AttributeHash: fmt.Sprint(i),
		})
	}
}

// compiledTo compiles an environment and returns the compile and what its last stage printed as errors.
func (s *stage) compiledTo(env intent.EnvironmentID) (intent.Compile, intent.Stage) {
	s.t.Helper()
	s.env = env
	c, _ := s.done(s.request("api"))
	_, stages, err := s.store.Compile(s.t.Context(), c.ID)
	if err != nil {
		s.t.Fatal(err)
	}
	return c, stages[len(stages)-1]
}

// A project may have ten resources and has six in one environment and four in another. A commit that adds one more
// fails in the stage that stores its version, and what is deployed stays. When the quota shrinks, versions that do not
// grow go on, so that the project can get rid of what it has too much.
func TestQuotaOfResources(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.quota(intent.QuotaResources, 10)
	a, b := s.env, s.another("b")
	compile := func(env intent.EnvironmentID, n int, fits bool) {
		t.Helper()
		s.exports(n)
		before, _ := s.store.ActiveVersion(t.Context(), env)
		c, last := s.compiledTo(env)
		if *c.Success != fits {
			t.Fatalf("%d resources: success %v; %s: %s", n, *c.Success, last.Name, last.ErrOutput)
		}
		after, err := s.store.ActiveVersion(t.Context(), env)
		if err != nil {
			t.Fatal(err)
		}
		if fits && after.Total != n {
			t.Errorf("%d resources are deployed, want %d", after.Total, n)
		}
		if fits {
			return
		}
		if after.Number != before.Number {
			t.Errorf("version %d replaced %d", after.Number, before.Number)
		}
		if last.Name != intent.StageExport || !strings.Contains(last.ErrOutput, "for resources and uses") ||
			!strings.Contains(last.ErrOutput, "ordain project quota p --resources") {
			t.Errorf("%s says: %s", last.Name, last.ErrOutput)
		}
	}
	compile(a, 6, true)
	compile(b, 4, true)
	compile(b, 5, false)
	compile(a, 5, true)
	compile(b, 5, true)
	s.quota(intent.QuotaResources, 3)
	compile(a, 6, false)
	compile(a, 4, true)
	compile(b, 5, true)

	// A rollback to more than the project may have is refused, too.
	s.env = a
	_, err := s.RollBack(control.As(t.Context(), "ada", "the shop is down"), a, 1)
	refusedByQuota(t, err, "resources")
}

// A project may compile one environment at a time, although the server has room for four. Its second environment waits
// for the first, and that of another project does not wait for either. When the quota is lifted, the second begins.
func TestQuotaOfCompiles(t *testing.T) {
	t.Parallel()
	s := limited(t, 4)
	s.quota(intent.QuotaCompiles, 1)
	a, b := s.env, s.another("b")
	other, err := s.CreateProject(t.Context(), intent.Project{Name: "other"})
	if err != nil {
		t.Fatal(err)
	}
	e, err := s.CreateEnvironment(t.Context(), control.NewEnvironment{
		Environment: intent.Environment{ProjectID: other.ID, Name: "c", Source: s.environment().Source},
	})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	running, most := map[string]int{}, map[string]int{}
	s.parts.mu.Lock()
	s.parts.compiled = func(project string) func() {
		mu.Lock()
		defer mu.Unlock()
		running[project]++
		most[project] = max(most[project], running[project])
		return func() {
			mu.Lock()
			defer mu.Unlock()
			running[project]--
		}
	}
	s.parts.mu.Unlock()
	compileAll := func() (ids []intent.CompileID) {
		for _, env := range []intent.EnvironmentID{a, b, e.ID} {
			s.env = env
			ids = append(ids, s.request("api"))
		}
		return ids
	}
	hold, holding := s.holdCompiles()
	ids := compileAll()
	<-holding
	<-holding // one of each project
	mu.Lock()
	if running["p"] != 1 || running["other"] != 1 {
		t.Errorf("these compile: %v", running)
	}
	mu.Unlock()
	close(hold)
	for _, id := range ids {
		s.done(id)
	}
	if most["p"] != 1 {
		t.Errorf("%d compiles of the project ran at a time", most["p"])
	}

	hold, holding = s.holdCompiles()
	ids = compileAll()
	<-holding
	<-holding
	s.env = a
	s.quota(intent.QuotaCompiles, 2)
	<-holding // the second environment does not wait for the first any more
	close(hold)
	for _, id := range ids {
		s.done(id)
	}
}

// The folders of a project take more disk than it may use. Its next compile fails at once, in a stage that says so, and
// what is deployed stays; once there is room again, the next one succeeds.
func TestQuotaOfDisk(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	if c, last := s.compiledTo(s.env); !*c.Success {
		t.Fatal(last.ErrOutput)
	}
	large := filepath.Join(s.layout.Environment(s.env).Compiler(), "large")
	if err := os.WriteFile(large, make([]byte, 3<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	s.quota(intent.QuotaDisk, 2<<20)
	c, last := s.compiledTo(s.env)
	if *c.Success || last.Name != intent.StageInit {
		t.Fatalf("success %v after %s", *c.Success, last.Name)
	}
	for _, word := range []string{"a quota of 2.0 MiB for disk and uses 3.", "clear or delete", "administrator"} {
		if !strings.Contains(last.ErrOutput, word) {
			t.Errorf("the stage does not say %q: %s", word, last.ErrOutput)
		}
	}
	if v := s.deployed(); v.Number != 1 {
		t.Errorf("version %d is deployed", v.Number)
	}
	quota, use, err := s.ProjectQuota(t.Context(), s.environment().ProjectID)
	if err != nil || quota[intent.QuotaDisk] != 2<<20 || use[intent.QuotaDisk] < 3<<20 ||
		use[intent.QuotaEnvironments] != 1 || use[intent.QuotaResources] != 1 {
		t.Errorf("quota %v, use %v, %v", quota, use, err)
	}
	s.quota(intent.QuotaDisk, 10<<20)
	if c, last := s.compiledTo(s.env); !*c.Success {
		t.Error(last.ErrOutput)
	}
}
