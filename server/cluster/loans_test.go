package cluster_test

import (
	"encoding/json"
	"testing"

	"ordain.dev/ordain/server/cluster"
	"ordain.dev/ordain/server/cluster/catalogue"
	"ordain.dev/ordain/server/cluster/task"
)

// Two projects have the same machines in their pools. A machine is lent to one of them at a time, and goes to the other
// one when it comes back.
func TestPoolsOfTwoProjects(t *testing.T) {
	one := open(t)
	two := openProject(t, one.Server, "blog", catalogueFiles())
	lent := map[string]string{} // by machine: the tag of the node that has it
	for _, l := range []*lab{one, two} {
		l.fail = func(did task.Task) string {
			var m catalogue.Machine
			if err := json.Unmarshal(did.Provider.Fields["machine"], &m); did.Action != task.Create || err != nil {
				return ""
			}
			if other := lent[m.Place()]; other != "" && other != did.Tag {
				t.Errorf("the machine %s is lent to %s and %s", m.Place(), other, did.Tag)
			}
			lent[m.Place()] = did.Tag
			return ""
		}
		l.create(cluster.Wish{Name: "shop", Template: "lamp", Size: 4})
		l.work()
	}
	if len(one.machines) != 4 || len(two.machines) != addresses-4 || len(lent) != addresses {
		t.Fatalf("of %d machines, one project has %d, and the other one %d", addresses, len(one.machines),
			len(two.machines))
	}
	one.end("shop")
	one.work()
	clear(lent)
	three := openProject(t, one.Server, "wiki", catalogueFiles())
	three.create(cluster.Wish{Name: "shop", Template: "lamp", Size: 2})
	three.work()
	if len(three.machines) != 2 {
		t.Errorf("machines came back, and another project got %d of them", len(three.machines))
	}
}
