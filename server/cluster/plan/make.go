package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ordain.dev/ordain/server/cluster/catalogue"
	"ordain.dev/ordain/server/cluster/task"
)

// Make returns what has to be done so that the nodes there are become those that are wanted. The plan is empty when
// nothing has to be done. The error says which services depend on each other in a circle.
func Make(have []Has, want Want) (Plan, error) {
	b := &builder{want: want, edges: newEdges(want.Services), groups: map[string]bool{}}
	has := make(map[int]Has, len(have))
	for _, h := range have {
		has[h.Number] = h
	}
	wanted := make(map[int]bool, len(want.Nodes))
	nodes := slices.SortedFunc(slices.Values(want.Nodes), func(a, b Wants) int { return a.Number - b.Number })
	for _, w := range nodes {
		wanted[w.Number] = true
		b.node(has[w.Number], w)
	}
	for _, number := range slices.Sorted(maps.Keys(has)) {
		if !wanted[number] && has[number].Made {
			b.plan.Deletes = append(b.plan.Deletes, number)
			b.add(Task{Node: number, Action: task.Delete})
		}
	}
	b.connect()
	return b.plan, b.order()
}

// builder collects the tasks of a plan.
type builder struct {
	want   Want
	edges  *edges
	plan   Plan
	groups map[string]bool // that have a task
}

// add adds a task, and returns its number.
func (b *builder) add(t Task) int {
	t.Number = len(b.plan.Tasks) + 1
	b.plan.Tasks = append(b.plan.Tasks, t)
	b.groups[t.Group()] = true
	return t.Number
}

// node adds the tasks of one node.
func (b *builder) node(has Has, w Wants) {
	ready := 0 // the task that all service tasks of the node need; 0: none
	if !has.Made {
		b.plan.Makes = append(b.plan.Makes, w.Number)
		has.Services = nil
	}
	if !has.Ready {
		// A machine whose creation was cut off is looked for by create, and made if there is none.
		create := b.add(Task{Node: w.Number, Action: task.Create})
		confirm := b.add(Task{Node: w.Number, Action: task.Confirm, Needs: []int{create}})
		ready = b.add(Task{Node: w.Number, Action: task.Bootstrap, Needs: []int{confirm}})
	}
	if ready == 0 && b.newAutomator(has, w) {
		ready = b.add(Task{Node: w.Number, Action: task.Bootstrap})
	}
	for _, name := range slices.Sorted(maps.Keys(has.Services)) {
		if slices.Contains(w.Services, name) {
			continue
		}
		chain := b.chain(w.Number, name, ready)
		if has.Services[name].Phase == Started {
			chain.step(task.Stop, "")
		}
		chain.put(task.Remove, "") // also if there is nothing to run: the record has to forget the service
	}
	for _, name := range slices.Sorted(slices.Values(w.Services)) {
		b.service(has.Services[name], w, name, ready)
	}
}

// newAutomator reports whether a service of the node is carried out by an automator that the node was not prepared for:
// its tool may have to be installed.
func (b *builder) newAutomator(has Has, w Wants) bool {
	return slices.ContainsFunc(Automators(w.Services, b.want.Services), func(a string) bool {
		return !slices.Contains(has.Automators, a)
	})
}

// Automators returns the types that carry out the actions of these services, sorted.
func Automators(services []string, definitions map[string]*catalogue.Service) []string {
	types := map[string]bool{}
	for _, name := range services {
		if s := definitions[name]; s != nil {
			for _, a := range s.Provisioner.Actions {
				types[a.Type] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(types))
}

func (b *builder) actions(service string) map[catalogue.Action]catalogue.ActionOf {
	if s := b.want.Services[service]; s != nil {
		return s.Provisioner.Actions
	}
	return nil
}

// service adds what brings a service from where it is to where it is wanted.
func (b *builder) service(is Service, w Wants, name string, ready int) {
	chain := b.chain(w.Number, name, ready)
	digest := w.Config[name]
	stopped := b.want.Stopped[name]
	if is.Phase.Rank() < Installed.Rank() {
		chain.step(task.Install, "")
	}
	again := is.Phase.Rank() >= Configured.Rank() && is.Config != digest
	if again && is.Phase == Started {
		chain.step(task.Stop, "")
	}
	if again || is.Phase.Rank() < Configured.Rank() {
		chain.step(task.Configure, digest)
	}
	if is.Phase.Rank() < Initialized.Rank() {
		chain.step(task.Initialize, "")
	}
	switch {
	case stopped && is.Phase == Started && !again:
		chain.step(task.Stop, "")
	case !stopped && (is.Phase != Started || again):
		chain.step(task.Start, digest)
	}
}

// chain adds tasks of a service on a node, one after the other.
type chain struct {
	b       *builder
	node    int
	service string
	last    int
}

func (b *builder) chain(node int, service string, ready int) *chain {
	return &chain{b: b, node: node, service: service, last: ready}
}

// step adds a task if the service has the action.
func (c *chain) step(a task.Action, config string) {
	if _, has := c.b.actions(c.service)[catalogue.Action(a)]; has {
		c.put(a, config)
	}
}

// put adds a task, also if the service lacks the action: then it only moves the record on.
func (c *chain) put(a task.Action, config string) {
	t := Task{Node: c.node, Service: c.service, Action: a, Config: config}
	if c.last != 0 {
		t.Needs = []int{c.last}
	}
	c.last = c.b.add(t)
}

// connect adds the groups that tasks wait for.
func (b *builder) connect() {
	var working []string // groups that deleting waits for
	for g := range b.groups {
		if g != string(task.Delete) &&
			g != string(task.Create) { // a machine may have to be made again, so its confirm counts
			working = append(working, g)
		}
	}
	slices.Sort(working)
	for i := range b.plan.Tasks {
		t := &b.plan.Tasks[i]
		if t.Action == task.Delete {
			t.After = working
			continue
		}
		if t.Service == "" {
			continue
		}
		for _, g := range b.edges.before(t.Action, t.Service) {
			if b.groups[g] {
				t.After = append(t.After, g)
			}
		}
		if b.groups[string(task.Confirm)] {
			t.After = append(t.After, string(task.Confirm))
		}
	}
}

// order gives each task its stage, and numbers the tasks so that those they need come first.
func (b *builder) order() error {
	members := map[string][]int{} // indexes of tasks by group
	for i, t := range b.plan.Tasks {
		members[t.Group()] = append(members[t.Group()], i)
	}
	// A task waits for its tasks and groups, and a group for its tasks.
	open := make([]int, len(b.plan.Tasks))
	groupOpen := make(map[string]int, len(members))
	groupStage := make(map[string]int, len(members))
	dependents := make([][]int, len(b.plan.Tasks))
	waiting := map[string][]int{}
	var ready []int
	for i, t := range b.plan.Tasks {
		open[i] = len(t.Needs) + len(t.After)
		groupOpen[t.Group()]++
		for _, n := range t.Needs {
			dependents[n-1] = append(dependents[n-1], i)
		}
		for _, g := range t.After {
			waiting[g] = append(waiting[g], i)
		}
		if open[i] == 0 {
			ready = append(ready, i)
		}
	}
	stage := make([]int, len(b.plan.Tasks))
	done := 0
	for len(ready) > 0 {
		i := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		done++
		advance := func(j, from int) {
			stage[j] = max(stage[j], from+1)
			if open[j]--; open[j] == 0 {
				ready = append(ready, j)
			}
		}
		for _, j := range dependents[i] {
			advance(j, stage[i])
		}
		g := b.plan.Tasks[i].Group()
		groupStage[g] = max(groupStage[g], stage[i])
		if groupOpen[g]--; groupOpen[g] == 0 {
			for _, j := range waiting[g] {
				advance(j, groupStage[g])
			}
		}
	}
	if done < len(b.plan.Tasks) {
		return b.circle(open)
	}
	b.renumber(stage)
	return nil
}

// renumber sorts the tasks by stage, and then as they were made.
func (b *builder) renumber(stage []int) {
	sorted := make([]int, len(stage))
	for i := range sorted {
		sorted[i] = i
		b.plan.Stages = max(b.plan.Stages, stage[i]+1)
	}
	slices.SortStableFunc(sorted, func(i, j int) int { return stage[i] - stage[j] })
	number := make([]int, len(stage))
	for position, i := range sorted {
		number[i] = position + 1
	}
	tasks := make([]Task, len(sorted))
	for position, i := range sorted {
		t := b.plan.Tasks[i]
		t.Number, t.Stage = position+1, stage[i]
		for k := range t.Needs {
			t.Needs[k] = number[t.Needs[k]-1]
		}
		tasks[position] = t
	}
	b.plan.Tasks = tasks
}

// circle says which services wait for each other.
func (b *builder) circle(open []int) error {
	names := map[string]bool{}
	for i, t := range b.plan.Tasks {
		if open[i] > 0 && t.Service != "" {
			names[t.Service] = true
		}
	}
	return fmt.Errorf("these services depend on each other in a circle: %s",
		strings.Join(slices.Sorted(maps.Keys(names)), ", "))
}
