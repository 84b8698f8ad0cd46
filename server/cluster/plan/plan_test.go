package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ordain.dev/ordain/server/cluster/catalogue"
	"ordain.dev/ordain/server/cluster/task"
)

// service makes a definition from words: "+action" has an action, "install<x" and "run<x" depend on x, "=x" provides x.
func service(name string, words ...string) *catalogue.Service {
	s := &catalogue.Service{Head: catalogue.Head{Name: name}}
	s.Provisioner.Actions = map[catalogue.Action]catalogue.ActionOf{}
	for _, w := range words {
		switch {
		case strings.HasPrefix(w, "+"):
			s.Provisioner.Actions[catalogue.Action(w[1:])] = catalogue.ActionOf{Type: "shell"}
		case strings.HasPrefix(w, "install<"):
			s.Dependencies.Install.Requires = append(s.Dependencies.Install.Requires, w[len("install<"):])
		case strings.HasPrefix(w, "run<"):
			s.Dependencies.Runtime.Uses = append(s.Dependencies.Runtime.Uses, w[len("run<"):])
		case strings.HasPrefix(w, "="):
			s.Dependencies.Provides = append(s.Dependencies.Provides, w[1:])
		}
	}
	return s
}

func definitions(all ...*catalogue.Service) map[string]*catalogue.Service {
	out := map[string]*catalogue.Service{}
	for _, s := range all {
		out[s.Name] = s
	}
	return out
}

// lines tells a plan, a line for each stage.
func lines(p Plan) string {
	stages := make([][]string, p.Stages)
	for _, t := range p.Tasks {
		stages[t.Stage] = append(stages[t.Stage], fmt.Sprintf("%d %s", t.Node, t.Group()))
	}
	var b strings.Builder
	for _, s := range stages {
		slices.Sort(s)
		fmt.Fprintln(&b, strings.Join(s, ", "))
	}
	return b.String()
}

func mustMake(t *testing.T, have []Has, want Want) Plan {
	t.Helper()
	p, err := Make(have, want)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAWebServerStartsAfterItsDatabaseOnAnotherNode(t *testing.T) {
	services := definitions(
		service("db", "+install", "+configure", "+initialize", "+start", "+stop", "=sql"),
		service("web", "+install", "+start", "run<sql"),
	)
	p := mustMake(t, nil, Want{
		Services: services,
		Nodes:    []Wants{{Number: 1000, Services: []string{"db"}}, {Number: 1001, Services: []string{"web"}}},
	})
	want := strings.TrimLeft(`
1000 create, 1001 create
1000 confirm, 1001 confirm
1000 bootstrap, 1001 bootstrap
1000 install db, 1001 install web
1000 configure db
1000 initialize db
1000 start db
1001 start web
`, "\n")
	if got := lines(p); got != want {
		t.Errorf("the plan is\n%swant\n%s", got, want)
	}
	if !slices.Equal(p.Makes, []int{1000, 1001}) || len(p.Deletes) != 0 {
		t.Errorf("it makes %v and deletes %v", p.Makes, p.Deletes)
	}
}

func TestAServiceWithoutAStartPassesOnWhatItWaitsFor(t *testing.T) {
	services := definitions(
		service("db", "+start"), service("schema", "+install", "run<db"), service("web", "+start", "run<schema"))
	p := mustMake(
		t,
		nil,
		Want{Services: services, Nodes: []Wants{{Number: 1000, Services: []string{"db", "schema", "web"}}}},
	)
	web := p.Tasks[slices.IndexFunc(p.Tasks, func(t Task) bool { return t.Group() == "start web" })]
	if !slices.Contains(web.After, "start db") {
		t.Errorf("web starts after %v, and not after the database", web.After)
	}
}

func TestAChangedConfigurationRestartsInOrder(t *testing.T) {
	services := definitions(
		service("db", "+install", "+configure", "+start", "+stop"),
		service("web", "+install", "+configure", "+start", "+stop", "run<db"),
	)
	started := Service{Phase: Started, Config: "old"}
	have := []Has{
		{
			Number:     1000,
			Made:       true,
			Ready:      true,
			Automators: []string{"shell"},
			Services:   map[string]Service{"db": started, "web": started},
		},
	}
	p := mustMake(t, have, Want{Services: services, Nodes: []Wants{{
		Number: 1000, Services: []string{"db", "web"}, Config: map[string]string{"db": "new", "web": "new"},
	}}})
	want := strings.TrimLeft(`
1000 stop web
1000 configure web, 1000 stop db
1000 configure db
1000 start db
1000 start web
`, "\n")
	if got := lines(p); got != want {
		t.Errorf("the plan is\n%swant\n%s", got, want)
	}
}

func TestMachinesGoWhenTheOthersWork(t *testing.T) {
	services := definitions(service("web", "+install", "+start"))
	running := map[string]Service{"web": {Phase: Started}}
	have := []Has{
		{Number: 1000, Made: true, Ready: true, Automators: []string{"shell"}, Services: running},
		{Number: 1001, Made: true, Ready: true, Automators: []string{"shell"}, Services: running},
	}
	p := mustMake(t, have, Want{Services: services, Nodes: []Wants{
		{Number: 1000, Services: []string{"web"}}, {Number: 1002, Services: []string{"web"}},
	}})
	last := p.Tasks[len(p.Tasks)-1]
	if last.Action != task.Delete || last.Node != 1001 || !slices.Contains(last.After, "start web") {
		t.Errorf("the last task is %+v", last)
	}
	if gone := mustMake(t, have, Want{Services: services}); lines(gone) != "1000 delete, 1001 delete\n" {
		t.Errorf("deleting the cluster is\n%s", lines(gone))
	}
}

func TestACircleIsNamed(t *testing.T) {
	services := definitions(service("a", "+start", "run<b"), service("b", "+start", "run<a"), service("c", "+start"))
	_, err := Make(nil, Want{Services: services, Nodes: []Wants{{Number: 1000, Services: []string{"a", "b", "c"}}}})
	if err == nil || !strings.Contains(err.Error(), "circle: a, b") {
		t.Errorf("the error is %v", err)
	}
}

// TestPlansLeadThere carries out plans of random clusters in random orders that the plan allows, sometimes only in
// part, as if the rest had failed. Nothing runs before what it depends on, and in the end nothing is left to do.
func TestPlansLeadThere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		services := drawServices(t)
		names := slices.Sorted(maps.Keys(services))
		world := map[int]Has{}
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			want := drawWant(t, services, names)
			for round := 0; ; round++ {
				p, err := Make(slices.Collect(maps.Values(world)), want)
				if err != nil {
					t.Fatal(err)
				}
				if len(p.Tasks) == 0 {
					break
				}
				if round > 3 {
					t.Fatalf("there is still something to do:\n%s", lines(p))
				}
				part := len(p.Tasks)
				if round == 0 && rapid.Bool().Draw(t, "fails") {
					part = rapid.IntRange(0, len(p.Tasks)).Draw(t, "part")
				}
				carryOut(t, p, want, world, part)
			}
			check(t, want, world)
		}
	})
}

func drawServices(t *rapid.T) map[string]*catalogue.Service {
	out := map[string]*catalogue.Service{}
	for i := range rapid.IntRange(1, 5).Draw(t, "services") {
		var words []string
		for _, a := range catalogue.Actions {
			if rapid.Bool().Draw(t, "has") {
				words = append(words, "+"+string(a))
			}
		}
		for j := range i { // dependencies on earlier services only: no circles
			switch rapid.IntRange(0, 4).Draw(t, "depends") {
			case 0:
				words = append(words, fmt.Sprintf("install<s%d", j))
			case 1:
				words = append(words, fmt.Sprintf("run<s%d", j))
			}
		}
		name := fmt.Sprintf("s%d", i)
		out[name] = service(name, words...)
	}
	return out
}

func drawWant(t *rapid.T, services map[string]*catalogue.Service, names []string) Want {
	w := Want{Services: services, Stopped: map[string]bool{}}
	for i := range 4 {
		if !rapid.Bool().Draw(t, "node") {
			continue
		}
		n := Wants{Number: 1000 + i, Config: map[string]string{}}
		for _, s := range names {
			if rapid.Bool().Draw(t, "on") {
				n.Services = append(n.Services, s)
				n.Config[s] = rapid.SampledFrom([]string{"one", "two"}).Draw(t, "config")
			}
		}
		w.Nodes = append(w.Nodes, n)
	}
	for _, s := range names {
		w.Stopped[s] = rapid.IntRange(0, 5).Draw(t, "stopped") == 0
	}
	return w
}

// carryOut runs the first tasks of a random order that the plan allows.
func carryOut(t *rapid.T, p Plan, want Want, world map[int]Has, part int) {
	done := map[int]bool{}
	groups := map[string]int{}
	for _, task := range p.Tasks {
		groups[task.Group()]++
	}
	for range part {
		var ready []Task
		for _, task := range p.Tasks {
			if !done[task.Number] && !slices.ContainsFunc(task.Needs, func(n int) bool { return !done[n] }) &&
				!slices.ContainsFunc(task.After, func(g string) bool { return groups[g] > 0 }) {
				ready = append(ready, task)
			}
		}
		if len(ready) == 0 {
			t.Fatalf("nothing can run, and the plan is not done:\n%s", lines(p))
		}
		next := rapid.SampledFrom(ready).Draw(t, "next")
		done[next.Number] = true
		groups[next.Group()]--
		apply(t, next, want, world)
	}
}

// apply does what a task does, and checks that it may.
func apply(t *rapid.T, next Task, want Want, world map[int]Has) {
	n := world[next.Node]
	n.Number = next.Node
	if n.Services == nil {
		n.Services = map[string]Service{}
	}
	switch next.Action {
	case task.Create:
		n.Made = true
	case task.Confirm:
	case task.Bootstrap:
		n.Ready = true
		for _, w := range want.Nodes {
			if w.Number == next.Node {
				n.Automators = Automators(w.Services, want.Services)
			}
		}
	case task.Delete:
		delete(world, next.Node)
		return
	case task.Remove:
		delete(n.Services, next.Service)
	default:
		if !n.Ready {
			t.Fatalf("%s runs on node %d, which is not ready", next.Group(), next.Node)
		}
		s := n.Services[next.Service]
		s.Phase = After(next.Action)
		if next.Config != "" {
			s.Config = next.Config
		}
		n.Services[next.Service] = s
	}
	if next.Action == task.Start {
		for _, parent := range want.Services[next.Service].Dependencies.Runtime.Uses {
			startable := want.Services[parent].Provisioner.Actions[catalogue.Start].Type != ""
			for _, w := range want.Nodes {
				is := world[w.Number].Services[parent].Phase
				if startable && !want.Stopped[parent] && slices.Contains(w.Services, parent) && is != Started {
					t.Fatalf("%s started before %s was on node %d", next.Service, parent, w.Number)
				}
			}
		}
	}
	world[next.Node] = n
}

// check compares the world with what was wanted.
func check(t *rapid.T, want Want, world map[int]Has) {
	if len(world) != len(want.Nodes) {
		t.Fatalf("there are %d nodes, want %d", len(world), len(want.Nodes))
	}
	for _, w := range want.Nodes {
		for s, is := range world[w.Number].Services {
			actions := want.Services[s].Provisioner.Actions
			_, starts := actions[catalogue.Start]
			_, stops := actions[catalogue.Stop]
			_, configures := actions[catalogue.Configure]
			switch {
			case !slices.Contains(w.Services, s):
				t.Fatalf("node %d still has %s", w.Number, s)
			case starts && !want.Stopped[s] && (is.Phase != Started || is.Config != w.Config[s]):
				t.Fatalf("node %d has %s %+v, want it started with %q", w.Number, s, is, w.Config[s])
			case stops && want.Stopped[s] && is.Phase == Started:
				t.Fatalf("node %d has %s started", w.Number, s)
			case configures && is.Config != w.Config[s]:
				t.Fatalf("node %d has %s configured with %q, want %q", w.Number, s, is.Config, w.Config[s])
			}
		}
	}
}

func BenchmarkMake(b *testing.B) {
	var all []*catalogue.Service
	var names []string
	for i := range 30 {
		words := []string{"+install", "+configure", "+initialize", "+start", "+stop"}
		for j := max(0, i-3); j < i; j++ {
			words = append(words, fmt.Sprintf("run<s%d", j), fmt.Sprintf("install<s%d", j))
		}
		names = append(names, fmt.Sprintf("s%d", i))
		all = append(all, service(names[i], words...))
	}
	want := Want{Services: definitions(all...)}
	for i := range 500 {
		want.Nodes = append(want.Nodes, Wants{Number: 1000 + i, Services: names})
	}
	start := time.Now()
	for b.Loop() {
		if _, err := Make(nil, want); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(time.Since(start).Milliseconds())/float64(b.N), "ms/plan")
}
