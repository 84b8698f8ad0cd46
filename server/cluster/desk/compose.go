package desk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/cluster"
	"ordain.dev/ordain/server/cluster/catalogue"
	"ordain.dev/ordain/server/cluster/macro"
	"ordain.dev/ordain/server/cluster/plan"
	"ordain.dev/ordain/server/cluster/task"
	"ordain.dev/ordain/server/store"
)

// compose makes the tasks of rows that were taken. ended are those that need no provisioner: there is nothing to run,
// or the task cannot be composed.
func (d *Desk) compose(
	ctx context.Context, rows []intent.ClusterTask,
) (tasks []task.Task, ended []task.Result, err error) {
	var clusters []uuid.UUID
	for _, r := range rows {
		d.cache.note(r)
		if !slices.Contains(clusters, r.Cluster) {
			clusters = append(clusters, r.Cluster)
		}
	}
	all, err := d.c.Store.ClusterNodes(ctx, false, clusters...)
	if err != nil {
		return nil, nil, err
	}
	nodes := map[uuid.UUID][]intent.ClusterNode{}
	for _, n := range all {
		nodes[n.Cluster] = append(nodes[n.Cluster], n)
	}
	common := &shared{peers: map[uuid.UUID]*peers{}, fields: map[fieldsOf]task.Fields{}}
	for _, r := range rows {
		c := &composer{Desk: d, row: r, shared: common}
		t, err := c.task(ctx, nodes[r.Cluster])
		switch {
		case errors.Is(err, errNothing):
			ended = append(ended, task.Result{ID: r.ID, Fence: r.Fence, Status: task.Done})
		case fault.Is(err, fault.Unavailable) || ctx.Err() != nil:
			return nil, nil, err
		case fault.Is(err, fault.Conflict): // as a pool without a free machine: it may have one later
			ended = append(ended, task.Result{ID: r.ID, Fence: r.Fence, Status: task.Failed, Problem: err.Error()})
		case err != nil:
			ended = append(ended, task.Result{ID: r.ID, Fence: r.Fence, Status: task.Refused, Problem: err.Error()})
		default:
			tasks = append(tasks, *t)
		}
	}
	if len(common.places) > 0 { // before a provider is asked for one of these machines
		err = d.c.Store.AddClusterNodeFacts(ctx, common.places)
	}
	return tasks, ended, err
}

// errNothing says that a task has nothing to run.
var errNothing = errors.New("there is nothing to run")

// composer makes one task.
type composer struct {
	*Desk
	row    intent.ClusterTask
	job    *job
	def    *cluster.Definition
	node   intent.ClusterNode
	t      *task.Task
	shared *shared
}

// shared is what tasks that are composed together have in common, so that it is read once.
type shared struct {
	peers  map[uuid.UUID]*peers // by job
	fields map[fieldsOf]task.Fields
	places []store.ClusterFacts // of the machines that are to be made, and not recorded yet
}

// fieldsOf identifies secret fields: of a provider in the version of a job, and of the job's cluster.
type fieldsOf struct {
	job      uuid.UUID
	provider string
	version  int
}

// peers are the nodes of a cluster, as macros and as plug-ins see them.
type peers struct {
	world    macro.World
	nodes    map[int]task.Peer
	accounts map[string]json.RawMessage // by provider: see account.go
}

func (c *composer) task(ctx context.Context, nodes []intent.ClusterNode) (*task.Task, error) {
	var err error
	if c.job, err = c.cache.of(ctx, c.c.Store, c.row.Job); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(nodes, func(n intent.ClusterNode) bool { return n.Number == c.row.Node })
	if i < 0 {
		return nil, fmt.Errorf("node %d is not in the record", c.row.Node)
	}
	c.node = nodes[i]
	if c.def, _ = c.job.definition(c.row.Node); c.def == nil {
		return nil, fmt.Errorf("nothing defines node %d", c.row.Node)
	}
	if c.def.Provider.Name != c.node.Provider {
		return nil, fmt.Errorf("node %d is at the provider %s, and the cluster's file names %s; name %s again, and "+
			"delete "+
			"the cluster if it is to be elsewhere", c.row.Node, c.node.Provider, c.def.Provider.Name, c.node.Provider)
	}
	action := task.Action(c.row.Action)
	c.t = &task.Task{
		ID: c.row.ID, Fence: c.row.Fence, LeaseMS: c.c.Lease.Milliseconds(), Attempt: c.row.Attempts, Action: action,
		Tag:     c.row.Cluster.String() + "-" + fmt.Sprint(c.row.Node),
		Replace: c.row.Replace, TimeoutMS: c.timeout(action).Milliseconds(),
		Cluster: task.Cluster{
			ID: c.row.Cluster, Name: c.job.cluster.Name, Owner: c.job.cluster.Owner,
			Environment: c.job.environment.Name,
		},
	}
	for _, step := range []func(context.Context) error{c.machine, c.provider, c.loan} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	world, err := c.world(nodes)
	if err != nil {
		return nil, err
	}
	switch {
	case action == task.Bootstrap:
		c.t.Automators = plan.Automators(c.servicesOf(c.row.Node), c.def.Catalogue.Services)
	case !action.OfProvider():
		if err := c.service(world); err != nil {
			return nil, err
		}
	}
	return c.t, c.resources(ctx)
}

func (c *composer) timeout(a task.Action) time.Duration {
	switch a {
	case task.Create, task.Delete:
		return c.c.CreateTimeout
	case task.Confirm:
		return c.c.ConfirmTimeout
	}
	return c.c.ServiceTimeout
}

// servicesOf returns the services that the goal puts on a node; of a node that goes, those it had.
func (c *composer) servicesOf(node int) []string {
	_, n := c.job.definition(node)
	if n == nil {
		return nil
	}
	return n.Services
}

// machine says what the node is: at its provider, and what plug-ins have learned about it.
func (c *composer) machine(context.Context) error {
	n := c.node
	facts := task.Fields{}
	if err := json.Unmarshal(n.Facts, &facts); err != nil {
		return fmt.Errorf("the facts of node %d cannot be read: %w", n.Number, err)
	}
	if n.Sealed != nil {
		plain, err := c.c.Key.Open(n.Sealed, sealedFor(c.row.Cluster, n.Number))
		if err != nil {
			return err
		}
		secrets := task.Fields{}
		if err := json.Unmarshal(plain, &secrets); err != nil {
			return err
		}
		maps.Copy(facts, secrets)
		c.t.Secrets = append(c.t.Secrets, texts(secrets)...)
	}
	c.t.Node = task.Node{
		Number: n.Number, Hostname: n.Hostname, HardwareType: n.Hardware, ImageType: n.Image, Facts: facts,
		Services: c.servicesOf(n.Number), Addresses: addressesOf(facts),
	}
	if h := c.def.Catalogue.HardwareTypes[n.Hardware]; h != nil {
		fields, _ := catalogue.Mapped(h.ProviderMap, c.def.Provider)
		c.t.Node.Flavor = fields["flavor"]
	}
	if i := c.def.Catalogue.ImageTypes[n.Image]; i != nil {
		fields, _ := catalogue.Mapped(i.ProviderMap, c.def.Provider)
		c.t.Node.Image, c.t.Node.SSHUser = fields["image"], fields["sshuser"]
	}
	return nil
}

func sealedFor(cluster uuid.UUID, node int) string {
	return fmt.Sprintf("cluster node %s/%d", cluster, node)
}

// addressesOf reads what a node's plug-in said of its addresses.
func addressesOf(facts task.Fields) map[string]string {
	out := map[string]string{}
	if raw := facts["addresses"]; raw != nil {
		_ = json.Unmarshal(raw, &out) // written by this package
	}
	return out
}

// texts returns the values of fields that are texts.
func texts(f task.Fields) (out []string) {
	for _, raw := range f {
		var text string
		if json.Unmarshal(raw, &text) == nil && text != "" {
			out = append(out, text)
		}
	}
	return out
}

// provider collects the fields of the provider. Only its own tasks get the secret ones.
func (c *composer) provider(ctx context.Context) error {
	fields := task.Fields{}
	for name, f := range c.def.Type.Parameters.Admin.Fields {
		if len(f.Default) > 0 && !f.Secret() {
			fields[name] = f.Default
		}
	}
	for name, f := range c.def.Type.Parameters.User.Fields {
		if len(f.Default) > 0 && !f.Secret() {
			fields[name] = f.Default
		}
	}
	for name, value := range c.def.Provider.Provisioner {
		if string(value) != `""` {
			fields[name] = value
		}
	}
	for name, value := range c.def.Manifest.Fields {
		text, err := json.Marshal(value)
		if err != nil {
			return err
		}
		fields[name] = text
	}
	if err := c.samePlace(fields); err != nil {
		return err
	}
	delete(fields, "machines") // of a pool: only the one that was lent matters
	c.t.Provider = task.Provider{Name: c.def.Provider.Name, Type: c.def.Provider.ProviderType, Fields: fields}
	if !c.t.Action.OfProvider() {
		for name, f := range c.def.Type.Parameters.Admin.Fields {
			if f.Secret() {
				delete(fields, name)
			}
		}
		return nil
	}
	secrets, err := c.secrets(ctx)
	maps.Copy(fields, secrets)
	c.t.Secrets = append(c.t.Secrets, texts(secrets)...)
	return err
}

// secrets opens the secret fields of the provider, and those that the user gave for the cluster, which come over them.
func (c *composer) secrets(ctx context.Context) (task.Fields, error) {
	of := fieldsOf{job: c.row.Job, provider: c.def.Provider.Name, version: c.def.Provider.Version}
	if known, has := c.shared.fields[of]; has {
		return known, nil
	}
	provider, err := c.c.Catalogues.ProviderSecrets(ctx, c.row.Project, of.provider, of.version)
	if err != nil {
		return nil, err
	}
	all := task.Fields{}
	maps.Copy(all, provider)
	sealed, err := c.c.Store.ClusterSecrets(ctx, c.job.environment.ID, c.job.cluster.Name)
	if err != nil {
		return nil, err
	}
	for name, text := range sealed {
		if all[name], err = c.c.Key.Open(text, cluster.SealedFor(c.job.environment.ID, c.job.cluster.Name,
			name)); err != nil {
			return nil, err
		}
	}
	c.shared.fields[of] = all
	return all, nil
}

// placeFields say where a provider is. A machine that was made in one place is not looked for in another one: it
// would not be found there, and count as gone.
var placeFields = []string{
	"aws_region", "endpoint", "openstack_auth_url", "openstack_region", "openstack_tenant", "openstack_domain",
}

// placeFact is the fact of a node that has the values of placeFields from when it was made.
const placeFact = "ordain_place"

func placeOf(fields task.Fields) json.RawMessage {
	place := map[string]json.RawMessage{}
	for _, name := range placeFields {
		if value, has := fields[name]; has {
			place[name] = value
		}
	}
	text, err := json.Marshal(place)
	if err != nil {
		return nil // the values are JSON from the record
	}
	return text
}

// samePlace refuses a task about a machine that was made in another place. The place is recorded before the provider is
// asked for the machine.
func (c *composer) samePlace(fields task.Fields) error {
	now := placeOf(fields)
	made, has := c.t.Node.Facts[placeFact]
	if has && !sameValue(made, now) {
		return fmt.Errorf("node %d was made where the provider %s was then (%s), and that is not where it is now "+
			"(%s); put "+
			"the provider's fields back, or delete the machine by hand and the cluster with it", c.row.Node,
			c.def.Provider.Name, made, now)
	}
	if has || c.t.Action != task.Create {
		return nil
	}
	facts, err := json.Marshal(map[string]json.RawMessage{placeFact: now})
	if err != nil {
		return err
	}
	c.shared.places = append(c.shared.places,
		store.ClusterFacts{Cluster: c.row.Cluster, Node: c.row.Node, Facts: facts})
	return nil
}

func sameValue(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// loan lends a machine of a pool to the node, when it is made, and names it to later tasks.
func (c *composer) loan(ctx context.Context) error {
	if c.def.Provider.ProviderType != catalogue.Pool {
		return nil
	}
	machines, problems := catalogue.Machines(c.def.Provider.Provisioner["machines"])
	if len(problems) > 0 {
		return fmt.Errorf("the machines of the pool %s are wrong: %s", c.def.Provider.Name, problems[0])
	}
	var place string
	var err error
	if c.t.Action == task.Create {
		var wanted map[string]string
		if wanted, err = labels(c.t.Provider.Fields["labels"]); err != nil {
			return err
		}
		var all []string
		for _, m := range machines {
			if hasAll(m.Labels, wanted) {
				all = append(all, m.Place())
			}
		}
		if len(all) == 0 {
			return fmt.Errorf("no machine of the pool %s has the labels %v", c.def.Provider.Name, wanted)
		}
		place, err = c.c.Store.PoolMachine(ctx, c.row.Project, c.def.Provider.Name, all, c.row.Cluster, c.row.Node)
	} else {
		place, err = c.c.Store.LentMachine(ctx, c.row.Cluster, c.row.Node)
	}
	if err != nil {
		return err
	}
	if place == "" && c.t.Action == task.Delete {
		return errNothing // it was never lent
	}
	i := slices.IndexFunc(machines, func(m catalogue.Machine) bool { return m.Place() == place })
	if i < 0 {
		return fmt.Errorf(
			"the machine %s was lent to node %d, and is not in the pool %s any more; put it back, or replace "+
				"the node",
			place,
			c.row.Node,
			c.def.Provider.Name,
		)
	}
	c.t.Provider.Fields["machine"], err = json.Marshal(machines[i])
	return err
}

// labels reads the labels that a user wants: an object, or a text that has one.
func labels(raw json.RawMessage) (map[string]string, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		if raw = json.RawMessage(text); text == "" {
			return nil, nil
		}
	}
	var out map[string]string
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, errors.New(`the field labels is not an object of texts, as {"rack": "7"}`)
	}
	return out, nil
}

func hasAll(labels, wanted map[string]string) bool {
	for name, value := range wanted {
		if labels[name] != value {
			return false
		}
	}
	return true
}

// world is what macros are about, and sets the peers of the task.
func (c *composer) world(nodes []intent.ClusterNode) (macro.World, error) {
	p := c.shared.peers[c.row.Job]
	if p == nil {
		p = &peers{nodes: map[int]task.Peer{}, accounts: map[string]json.RawMessage{}}
		p.world = macro.World{Owner: c.job.cluster.Owner, Nodes: map[int]macro.Node{}}
		for _, n := range nodes {
			var facts struct {
				Addresses map[string]string `json:"addresses"`
				Account   json.RawMessage   `json:"provider_account"`
			}
			if err := json.Unmarshal(n.Facts, &facts); err != nil {
				return p.world, fmt.Errorf("the facts of node %d cannot be read: %w", n.Number, err)
			}
			p.noteAccount(n, facts.Account)
			services := c.servicesOf(n.Number)
			p.world.Nodes[n.Number] = macro.Node{
				Number: n.Number, Hostname: n.Hostname, Addresses: facts.Addresses, Services: services,
			}
			p.nodes[n.Number] = task.Peer{Hostname: n.Hostname, Addresses: facts.Addresses, Services: services}
		}
		c.shared.peers[c.row.Job] = p
	}
	c.t.Nodes = p.nodes
	c.sameAccount(p)
	w := p.world
	w.Self = c.row.Node
	return w, nil
}

// service says what is to be run, with macros replaced.
func (c *composer) service(w macro.World) error {
	name := c.row.Service
	def := c.def.Catalogue.Services[name]
	if def == nil && c.job.prior != nil {
		def = c.job.prior.Catalogue.Services[name]
	}
	if def == nil {
		if c.t.Action == task.Remove {
			return errNothing // nothing says how, and the record has to forget it
		}
		return fmt.Errorf("there is no service %q any more", name)
	}
	action, has := def.Provisioner.Actions[catalogue.Action(c.t.Action)]
	if !has {
		return errNothing
	}
	fields := task.Fields{}
	for key, value := range action.Fields {
		expanded, err := macro.ExpandJSON(value, w)
		if err != nil {
			return err
		}
		fields[key] = expanded
	}
	var err error
	if c.t.Config, err = macro.ExpandJSON(c.def.Config, w); err != nil {
		return err
	}
	c.t.Service = &task.Service{Name: name, Type: action.Type, Fields: fields}
	return nil
}

// resources lists the files that the plug-ins of the task may use.
func (c *composer) resources(ctx context.Context) error {
	add := func(kind catalogue.Kind, plugin string) error {
		found, err := c.c.Resources.Active(ctx, c.row.Project, string(kind), plugin)
		c.t.Resources = append(c.t.Resources, found...)
		return err
	}
	if err := add(catalogue.ProviderTypes, c.t.Provider.Type); err != nil {
		return err
	}
	automators := c.t.Automators
	if c.t.Service != nil {
		automators = []string{c.t.Service.Type}
	}
	for _, a := range automators {
		if err := add(catalogue.AutomatorTypes, a); err != nil {
			return err
		}
	}
	return nil
}
