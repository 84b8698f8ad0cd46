package workers_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/cluster/task"
)

// At a provider no more machines of a project are made at a time than it may have, over all that take tasks. Those of
// another project do not count, although its provider has the same name; nor do tasks that make no machine.
func TestMachinesAreMadeAFewAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil) // without provisioners: this test takes the tasks
	own, other := w.order("own", 5, 4), w.order("other", 5, 4)
	take := func(project uuid.UUID, by string, room, most int) []intent.ClusterTask {
		t.Helper()
		return must(w.store.TakeClusterTasks(w.ctx, project, by, room, time.Minute, most))(t)
	}
	if got := take(other.project, "c", 10, 4); len(got) != 4 {
		t.Fatalf("%d tasks of 5 were taken, and the provider may have 4", len(got))
	}
	first := take(own.project, "a", 2, 3)
	if len(first) != 2 {
		t.Fatalf("%d tasks were taken, and there was room for 2", len(first))
	}
	if got := take(own.project, "b", 10, 3); len(got) != 1 {
		t.Fatalf("another one took %d tasks, want 1: the provider may have 3, and 2 run", len(got))
	}
	if got := take(own.project, "b", 10, 3); len(got) != 0 {
		t.Fatalf("%d tasks more were taken than the provider may have", len(got))
	}
	if recorded := must(w.store.EndClusterTasks(w.ctx, []intent.ClusterTaskEnd{
		{ID: first[0].ID, Fence: first[0].Fence, State: intent.TaskComplete},
	}))(t); len(recorded) != 1 {
		t.Fatal("the end of a task was not recorded")
	}
	actions := map[task.Action]int{}
	for _, got := range take(own.project, "a", 10, 3) {
		actions[task.Action(got.Action)]++
		if got.Action == string(task.Confirm) && got.Node != first[0].Node {
			t.Errorf("node %d is to be confirmed before it is made", got.Node)
		}
	}
	if actions[task.Create] != 1 || actions[task.Confirm] != 1 || len(actions) != 2 {
		t.Errorf("after one machine was made, %v was taken, want the next one, and to confirm the first", actions)
	}
}
