package clusters

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	mrand "math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"ordain.dev/ordain/cmd/ordain/e2e/lab"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/cluster"
	"ordain.dev/ordain/server/cluster/clustertest"
	"ordain.dev/ordain/server/cluster/provisioner/cloudtest"
)

// region is EC2 with machines behind it: whenever EC2 has an instance, there is a machine with an SSH server at the
// address that EC2 gave it, and when the instance ends the machine does. Its subnet is a part of the loopback network.
type region struct {
	*story
	ec2     *cloudtest.EC2
	team    *clustertest.Machine // has the key pair that all instances let in, and is none of them
	running map[string]*clustertest.Machine
	ever    []string // ids of all instances that there were
}

func newRegion(t *testing.T) *region {
	r := &region{story: begin(t), ec2: cloudtest.StartEC2(t), running: map[string]*clustertest.Machine{}}
	r.team = clustertest.Machines(t, 1)[0]
	a, b := 1+mrand.IntN(254), mrand.IntN(256)
	if l, err := net.Listen("tcp", fmt.Sprintf("127.%d.%d.4:22", a, b)); err != nil {
		tool.Missing(t, "port 22 of addresses of the loopback network is taken on this machine: %v", err)
	} else {
		_ = l.Close()
	}
	subnet, group := r.ec2.Network(t, fmt.Sprintf("127.%d.0.0/16", a), fmt.Sprintf("127.%d.%d.0/24", a, b), r.sign)
	provider, err := json.Marshal(map[string]any{
		"name": "lab", "providertype": "aws", "provisioner": map[string]string{
			"api_user": r.ec2.Key, "api_password": r.ec2.Secret, "aws_region": r.ec2.Region, "endpoint": r.ec2.URL,
			"ssh_keypair": "team", "ssh_key_resource": "team", "subnet_id": subnet, "security_group_ids": group,
			"associate_public_ip": "false",
		},
	})
	r.must(err)
	r.offer(provider, "aws", r.team.Key())
	r.look = r.power
	return r
}

func (r *region) sign(q *http.Request, body []byte) {
	sum := sha256.Sum256(body)
	r.must(v4.NewSigner().SignHTTP(r.ctx, aws.Credentials{AccessKeyID: r.ec2.Key, SecretAccessKey: r.ec2.Secret}, q,
		hex.EncodeToString(sum[:]), "ec2", r.ec2.Region, time.Now()))
}

// power starts machines for new instances, and ends those of instances that are gone.
func (r *region) power() {
	r.T.Helper()
	alive := r.ec2.Alive(r.T, r.sign)
	for id, m := range r.running {
		if !slices.ContainsFunc(alive, func(i cloudtest.Machine) bool { return i.ID == id }) {
			m.Stop()
			delete(r.running, id)
		}
	}
	r.machines = nil
	for _, i := range alive {
		if r.running[i.ID] == nil {
			r.running[i.ID] = clustertest.At(r.T, i.ID, i.Private, 22, r.team)
			r.ever = append(r.ever, i.ID)
		}
		r.machines = append(r.machines, r.running[i.ID])
	}
}

// instances checks how many instances there are, each with the tag of a node that is in the record.
func (r *region) instances(want int) {
	r.T.Helper()
	r.power()
	nodes := r.nodes()
	for _, i := range r.ec2.Alive(r.T, r.sign) {
		known := slices.ContainsFunc(nodes, func(n intent.ClusterNode) bool {
			tag := fmt.Sprintf("%s-%d", n.Cluster, n.Number)
			return slices.ContainsFunc(i.Tags, func(t cloudtest.Tag) bool {
				return t.Key == "ordain:tag" && t.Value == tag
			})
		})
		if !known {
			r.T.Errorf("no node has the instance %s with the tags %v", i.ID, i.Tags)
		}
	}
	if len(r.running) != want || len(nodes) != want {
		r.T.Errorf("there are %d instances and %d nodes, want %d", len(r.running), len(nodes), want)
	}
}

func (r *region) nodes() []intent.ClusterNode {
	r.T.Helper()
	nodes, err := r.Store.ClusterNodes(r.ctx, false, r.cluster().ID)
	r.must(err)
	return nodes
}

// pinned checks that each node has the host key that its machine showed when it was made.
func (r *region) pinned() {
	r.T.Helper()
	for _, n := range r.nodes() {
		var facts struct {
			Keys []string `json:"ssh_host_keys"`
		}
		r.must(json.Unmarshal(n.Facts, &facts))
		want := strings.Join(strings.Fields(r.machineOf(n.Number).HostKeys()[0])[:2], " ")
		if len(facts.Keys) != 1 || !strings.HasPrefix(facts.Keys[0], want) {
			r.T.Errorf("node %d has the host keys %q pinned, want %q", n.Number, facts.Keys, want)
		}
	}
}

// TestTheStoryOfAClusterInEC2: a cluster of three nodes is made through EC2, is amended to five, has a node replaced
// behind whose address another machine answers, and is deleted. What counts is what lies on the machines, and which
// instances EC2 has.
func TestTheStoryOfAClusterInEC2(t *testing.T) {
	tool.Heavy(t, "runs servers and machines")
	r := newRegion(t)
	_, written, err := r.parts.Clusters.Create(r.ctx, r.e, cluster.Wish{Name: "shop", Template: "lamp", Size: 3})
	r.must(err)
	r.inPlace(written.Commit)
	r.instances(3)
	r.pinned()
	r.count("mysql", 1)
	r.count("apache", 2)
	database := r.with("mysql")[0]
	for _, m := range r.with("apache") {
		if task := m.Read("/srv/apache/task.json"); !strings.Contains(task, `"database": "`+database.Address+`"`) {
			t.Errorf("apache on %s is configured with %s", m.Address, task)
		}
	}

	five := 5
	r.amend(cluster.Amendment{Size: &five})
	r.instances(5)
	r.pinned()
	r.count("apache", 4)

	// Another machine answers at the address of a node. Nothing is sent to it, and the node is not as wanted until it
	// has a machine of its own again.
	broken := r.machineOf(1002)
	broken.ChangeHostKey()
	_, _, err = r.parts.Clusters.Amend(r.ctx, r.e, "shop", cluster.Amendment{AddServices: []string{"memcached"}})
	r.must(err)
	r.until("the change fails", func(c intent.Cluster) bool { return c.State == intent.ClusterInconsistent })
	lab.Mentions(t, r.cluster().Problem, "memcached on node 1002", "host key")
	if broken.Exists("/srv/memcached") {
		t.Error("a machine with another host key got a service")
	}
	before := len(r.ever)
	r.amendAnyway(cluster.Amendment{Replace: []int{1002}})
	r.instances(5)
	r.pinned()
	r.count("apache", 4)
	r.count("memcached", 5)
	if got := len(r.ever) - before; got != 1 {
		t.Errorf("%d instances were made to replace one", got)
	}
	if slices.Contains(r.machines, broken) {
		t.Error("the instance of the broken machine is still there")
	}

	_, err = r.parts.Clusters.Delete(r.ctx, r.e, "shop")
	r.must(err)
	r.until("the cluster ends", func(c intent.Cluster) bool { return c.State == intent.ClusterTerminated })
	r.instances(0)
	if len(r.ever) != 6 {
		t.Errorf("EC2 had the instances %v, want 6: no machine is made twice", r.ever)
	}
	r.machines = []*clustertest.Machine{r.team} // whose key is looked for
	r.tellsNoSecrets()
}

// amendAnyway amends a cluster whose last change failed.
func (r *region) amendAnyway(a cluster.Amendment) {
	r.T.Helper()
	_, written, err := r.parts.Clusters.Amend(r.ctx, r.e, "shop", a)
	r.must(err)
	lab.WaitFor(r.T, func() bool {
		r.power()
		c := r.cluster()
		return c.State == intent.ClusterActive && c.AppliedAt == written.Commit
	}, func() string { return "the cluster is not repaired: " + r.cluster().Problem })
}
