package apitest

import (
	"cmp"
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/control"
)

// paginate sorts, filters and cuts as the store does.
func paginate[T any](
	items []T,
	q intent.ListQuery,
	key func(T, string) (value, id string),
	match func(T, string, string) bool,
) intent.Page[T] {
	var all []T
	for _, item := range items {
		ok := true
		for name, values := range q.Filters {
			ok = ok && slices.ContainsFunc(values, func(v string) bool { return match(item, name, v) })
		}
		if ok {
			all = append(all, item)
		}
	}
	order := func(a, b T) int {
		av, ai := key(a, q.Sort)
		bv, bi := key(b, q.Sort)
		return cmp.Or(natural(av, bv), cmp.Compare(ai, bi))
	}
	slices.SortStableFunc(all, order)
	// beyond tells where an item lies from a bound: -1 below, 0 at it, 1 above.
	beyond := func(item T, b *intent.Bound) int {
		v, id := key(item, q.Sort)
		bound := "" // no column of these lists is NULL, so everything is above it
		if b.Value != nil {
			bound = *b.Value
		}
		if n := natural(v, bound); n != 0 || b.ID == "" {
			return n
		}
		return cmp.Compare(id, b.ID)
	}
	limit := q.Limit
	if limit == 0 {
		limit = len(all)
	}
	from, to := 0, len(all)
	switch {
	case q.After != nil:
		for from < len(all) && beyond(all[from], q.After) <= 0 {
			from++
		}
		to = min(len(all), from+limit)
	case q.Before != nil:
		for to > 0 && beyond(all[to-1], q.Before) >= 0 {
			to--
		}
		from = max(0, to-limit)
	case q.Desc:
		from = max(0, to-limit)
	default:
		to = min(to, limit)
	}
	p := intent.Page[T]{Items: slices.Clone(all[from:to]), Total: len(all), Before: from, After: len(all) - to}
	if q.Desc {
		slices.Reverse(p.Items)
		p.Before, p.After = p.After, p.Before
	}
	return p
}

// natural compares texts, or numbers and times by value.
func natural(a, b string) int {
	if x, err := strconv.Atoi(a); err == nil {
		if y, err := strconv.Atoi(b); err == nil {
			return cmp.Compare(x, y)
		}
	}
	if x, err := time.Parse(time.RFC3339Nano, a); err == nil {
		if y, err := time.Parse(time.RFC3339Nano, b); err == nil {
			return x.Compare(y)
		}
	}
	return cmp.Compare(a, b)
}

func part(value, wanted string) bool {
	return strings.Contains(strings.ToLower(value), strings.ToLower(wanted))
}

func micro(t time.Time) string {
	return t.UTC().Truncate(time.Microsecond).Format(time.RFC3339Nano)
}

func inRange(value, wanted string) bool {
	operator, operand, _ := strings.Cut(wanted, ":")
	n := natural(value, operand)
	return map[string]bool{"lt": n < 0, "le": n <= 0, "gt": n > 0, "ge": n >= 0}[operator]
}

// Compiles is a verb.
func (c *Control) Compiles(_ context.Context, id uuid.UUID, q intent.ListQuery) (intent.Page[intent.Compile], error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, err := c.env(id)
	if err != nil {
		return intent.Page[intent.Compile]{}, err
	}
	var all []intent.Compile
	for _, r := range e.Runs {
		all = append(all, r.Compile)
	}
	return paginate(
		all,
		q,
		func(x intent.Compile, _ string) (string, string) { return micro(x.Requested), x.ID.String() },
		func(x intent.Compile, name, v string) bool {
			switch name {
			case "success":
				return x.Success != nil && strconv.FormatBool(*x.Success) == v
			case "started":
				return strconv.FormatBool(x.Started != nil) == v
			case "completed":
				return strconv.FormatBool(x.Completed != nil) == v
			}
			return inRange(micro(x.Requested), v)
		},
	), nil
}

// Versions is a verb.
func (c *Control) Versions(_ context.Context, id uuid.UUID, q intent.ListQuery) (intent.Page[intent.Version], error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, err := c.env(id)
	if err != nil {
		return intent.Page[intent.Version]{}, err
	}
	var all []intent.Version
	for _, v := range e.Vers {
		all = append(all, v.Version)
	}
	return paginate(all, q, func(x intent.Version, _ string) (string, string) { return strconv.Itoa(x.Number), "" },
		func(x intent.Version, name, v string) bool {
			switch name {
			case "status":
				return string(x.Status) == v
			case "released":
				return strconv.FormatBool(x.Released != nil) == v
			case "date":
				return inRange(micro(x.Created), v)
			}
			return inRange(strconv.Itoa(x.Number), v)
		}), nil
}

func idColumn(id intent.ResourceID, column string) string {
	switch column {
	case "agent":
		return id.Agent
	case "resource_id_value":
		return id.Value
	case "resource_id":
		return id.String()
	}
	return id.Type
}

// VersionResourcePage is a verb.
func (c *Control) VersionResourcePage(
	ctx context.Context,
	id uuid.UUID,
	number int,
	q intent.ListQuery,
) (intent.Page[intent.Resource], error) {
	all, err := c.VersionResources(ctx, id, number)
	if err != nil {
		return intent.Page[intent.Resource]{}, err
	}
	return paginate(
		all,
		q,
		func(x intent.Resource, s string) (string, string) { return idColumn(x.ID, s), x.ID.String() },
		func(x intent.Resource, name, v string) bool { return part(idColumn(x.ID, name), v) },
	), nil
}

// DiffVersions is a verb.
func (c *Control) DiffVersions(ctx context.Context, id uuid.UUID, from, to int) ([]intent.ResourceDiff, error) {
	if from >= to {
		return nil, fault.New("apitest", fault.Invalid, "the first version must be older than the second")
	}
	a, err := c.VersionResources(ctx, id, from)
	if err != nil {
		return nil, err
	}
	b, err := c.VersionResources(ctx, id, to)
	if err != nil {
		return nil, err
	}
	read := func(list []intent.Resource) map[intent.ResourceID]map[string]any {
		out := map[intent.ResourceID]map[string]any{}
		for _, r := range list {
			attributes := map[string]any{}
			if err := json.Unmarshal(r.Attributes, &attributes); err != nil {
				panic(err)
			}
			out[r.ID] = attributes
		}
		return out
	}
	old, young := read(a), read(b)
	ids := map[intent.ResourceID]bool{}
	for id := range old {
		ids[id] = true
	}
	for id := range young {
		ids[id] = true
	}
	var out []intent.ResourceDiff
	for id := range ids {
		d := intent.ResourceDiff{ID: id, Kind: intent.DiffModified, Attributes: map[string]intent.AttributeChange{}}
		for k, v := range old[id] {
			if w, ok := young[id][k]; !ok || !reflect.DeepEqual(v, w) {
				d.Attributes[k] = intent.AttributeChange{Current: v, Desired: w}
			}
		}
		for k, w := range young[id] {
			if _, ok := old[id][k]; !ok {
				d.Attributes[k] = intent.AttributeChange{Desired: w}
			}
		}
		switch {
		case old[id] == nil:
			d.Kind = intent.DiffAdded
		case young[id] == nil:
			d.Kind = intent.DiffDeleted
		case len(d.Attributes) == 0:
			continue
		}
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b intent.ResourceDiff) int { return cmp.Compare(a.ID.String(), b.ID.String()) })
	return out, nil
}

// CancelDryRun is a verb.
func (c *Control) CancelDryRun(_ context.Context, env intent.EnvironmentID, id intent.ActionID) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, err := c.env(env)
	if err != nil {
		return err
	}
	for i := range e.Dries {
		if e.Dries[i].ID != id {
			continue
		}
		if e.Dries[i].Ended != nil {
			return fault.New("apitest", fault.Conflict, "this dry run has ended")
		}
		at := c.Now()
		e.Dries[i].Ended, e.Dries[i].Ending = &at, intent.DryRunCancelled
		c.Asked = append(c.Asked, "cancel "+id.String())
		return nil
	}
	return fault.New("apitest", fault.NotFound, "there is no such dry run")
}

// NoLongerManaged is a list.
func (c *Control) NoLongerManaged(_ context.Context, run intent.DryRun) ([]intent.ResourceID, error) {
	if run.Base == 0 {
		return nil, nil
	}
	return []intent.ResourceID{{Type: "fs::File", Agent: "web01", Attribute: "path", Value: "/srv/www/left.html"}}, nil
}

// RefreshFacts is a verb.
func (c *Control) RefreshFacts(
	_ context.Context,
	env intent.EnvironmentID,
	ids []intent.ResourceID,
) ([]intent.ResourceID, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.env(env); err != nil {
		return nil, err
	}
	for _, id := range ids {
		if id.Type == "no::Such" {
			return nil, fault.New("apitest", fault.NotFound, "there is no such resource")
		}
		c.Asked = append(c.Asked, "facts "+id.String())
	}
	return ids, nil
}

// StartDryRun is a verb.
func (c *Control) StartDryRun(_ context.Context, id uuid.UUID, q control.DryRunRequest) (uuid.UUID, error) {
	c.mu.Lock()
	number := q.Version
	e, err := c.env(id)
	var v *Ver
	if err == nil && q.Commit != "" {
		v, number = &Ver{}, 0
	} else if err == nil {
		v, err = c.version(id, number)
	}
	if err == nil && e.Halted {
		err = fault.New("apitest", fault.Conflict, "the environment is halted")
	}
	if err != nil {
		c.mu.Unlock()
		return uuid.Nil, err
	}
	run := Dry{
		DryRun: intent.DryRun{
			ID:          uuid.New(),
			Environment: id,
			Version:     number,
			Date:        c.Now(),
			Total:       v.Total,
			Todo:        v.Total,
		},
	}
	e.Dries = append([]Dry{run}, e.Dries...)
	run.Commit, run.Filter = q.Commit, q.Filter
	e.Dries[0] = run
	asked := "dryrun " + strconv.Itoa(number)
	if q.Commit != "" {
		asked = "dryrun " + q.Commit
	}
	c.Asked = append(c.Asked, asked)
	c.mu.Unlock()
	c.publish(id, bus.DryRun, run.ID.String())
	return run.ID, nil
}

// DryRuns is a verb.
func (c *Control) DryRuns(_ context.Context, id uuid.UUID, number int) ([]intent.DryRun, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, err := c.env(id)
	if err != nil {
		return nil, err
	}
	var out []intent.DryRun
	for _, d := range e.Dries {
		if number == 0 || d.Version == number {
			out = append(out, d.DryRun)
		}
	}
	return out, nil
}

// DryRun is a verb.
func (c *Control) DryRun(_ context.Context, id, run uuid.UUID) (intent.DryRun, []intent.ResourceDiff, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, err := c.env(id)
	if err != nil {
		return intent.DryRun{}, nil, err
	}
	for _, d := range e.Dries {
		if d.ID == run {
			return d.DryRun, slices.Clone(d.Diffs), nil
		}
	}
	return intent.DryRun{}, nil, missing("dry run")
}

// Deploy is a verb.
func (c *Control) Deploy(ctx context.Context, id uuid.UUID, full bool, agents []string) ([]string, error) {
	active, err := c.ActiveVersion(ctx, id)
	if err != nil {
		return nil, err
	}
	if active == nil {
		return nil, fault.New("apitest", fault.NotFound, "no version is released yet")
	}
	var found []string
	err = c.change(id, "deploy full="+strconv.FormatBool(full)+" "+strings.Join(agents, ","), func(e *Env) error {
		for _, a := range e.AgentList {
			if len(agents) == 0 || slices.Contains(agents, a.Name) {
				found = append(found, a.Name)
			}
		}
		if len(found) == 0 {
			return missing("agent")
		}
		return nil
	})
	return found, err
}

// DeployResource is a verb.
func (c *Control) DeployResource(ctx context.Context, id uuid.UUID, rid intent.ResourceID) error {
	if _, err := c.Resource(ctx, id, rid); err != nil {
		return err
	}
	return c.change(id, "deploy "+rid.String(), func(*Env) error { return nil })
}

// Unpark is a verb.
func (c *Control) Unpark(_ context.Context, id uuid.UUID, ids []intent.ResourceID) ([]intent.ResourceID, error) {
	var freed []intent.ResourceID
	names := make([]string, len(ids))
	for i, rid := range ids {
		names[i] = rid.String()
	}
	err := c.change(id, "unpark "+strings.Join(names, " "), func(e *Env) error {
		for _, rid := range ids {
			if !slices.ContainsFunc(e.Rows, func(r intent.ResourceRow) bool { return r.State.ID == rid }) {
				return missing("resource")
			}
		}
		for i := range e.Rows {
			st := &e.Rows[i].State
			if st.Parked != intent.NotParked && (len(ids) == 0 || slices.Contains(ids, st.ID)) {
				st.Free()
				freed = append(freed, st.ID)
			}
		}
		return nil
	})
	c.publish(id, bus.Resource, "")
	return freed, err
}

// Drift is a verb.
func (c *Control) Drift(_ context.Context, id uuid.UUID, q intent.ListQuery) (intent.Page[intent.Drift], error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, err := c.env(id)
	if err != nil {
		return intent.Page[intent.Drift]{}, err
	}
	return paginate(e.Drifts, q, func(x intent.Drift, s string) (string, string) {
		if s == "resource_id" {
			return x.Resource.String(), x.ID.String()
		}
		return x.Since.UTC().Format(time.RFC3339Nano), x.ID.String()
	}, func(x intent.Drift, name, v string) bool {
		switch name {
		case "open":
			return strconv.FormatBool(x.Ended == nil) == v
		case "resource":
			return x.Resource.String() == v
		case "resource_id":
			return part(x.Resource.String(), v)
		case "attribute":
			return part(x.Attribute, v)
		case "ending":
			return string(x.Ending) == v
		}
		return true
	}), nil
}

// PauseAgent is a verb.
func (c *Control) PauseAgent(_ context.Context, id uuid.UUID, name string, paused bool) error {
	verb := "unpause "
	if paused {
		verb = "pause "
	}
	err := c.change(id, verb+name, func(e *Env) error {
		if name != "" && !slices.ContainsFunc(e.AgentList, func(a intent.Agent) bool { return a.Name == name }) {
			return fault.New("apitest", fault.NotFound, "there is no agent "+name)
		}
		for i := range e.AgentList {
			if name == "" || e.AgentList[i].Name == name {
				e.AgentList[i].Paused = paused
			}
		}
		return nil
	})
	c.publish(id, bus.Resource, "")
	return err
}

// Agents is a verb.
func (c *Control) Agents(_ context.Context, id uuid.UUID, q intent.ListQuery) (intent.Page[intent.Agent], error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, err := c.env(id)
	if err != nil {
		return intent.Page[intent.Agent]{}, err
	}
	return paginate(e.AgentList, q, func(x intent.Agent, s string) (string, string) {
		if s == "paused" {
			return strconv.FormatBool(x.Paused), x.Name
		}
		return x.Name, x.Name
	}, func(x intent.Agent, name, v string) bool {
		if name == "status" {
			return x.Paused == (v == "paused")
		}
		return part(x.Name, v)
	}), nil
}

// Executors is a verb.
func (c *Control) Executors(_ context.Context, id uuid.UUID) (intent.Executors, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, err := c.env(id)
	if err != nil {
		return intent.Executors{}, err
	}
	return e.Execs, nil
}

// ResourceCounts is a verb.
func (c *Control) ResourceCounts(_ context.Context, id uuid.UUID) (map[intent.Status]int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, err := c.env(id)
	if err != nil {
		return nil, err
	}
	out := map[intent.Status]int{}
	for _, r := range e.Rows {
		if r.State.Orphaned == 0 {
			out[r.State.Status()]++
		}
	}
	return out, nil
}

// Resources is a verb.
func (c *Control) Resources(
	_ context.Context,
	id uuid.UUID,
	q intent.ListQuery,
) (intent.Page[intent.ResourceRow], error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, err := c.env(id)
	if err != nil {
		return intent.Page[intent.ResourceRow]{}, err
	}
	return paginate(e.Rows, q, func(x intent.ResourceRow, s string) (string, string) {
		if s == "status" {
			return string(x.State.Status()), x.State.ID.String()
		}
		return idColumn(x.State.ID, s), x.State.ID.String()
	}, func(x intent.ResourceRow, name, v string) bool {
		if name == "parked" {
			return strconv.FormatBool(x.State.Parked != intent.NotParked) == v
		}
		if name == "status" {
			status, not := strings.CutPrefix(v, "!")
			return (string(x.State.Status()) == status) != not
		}
		return part(idColumn(x.State.ID, name), v)
	}), nil
}

// Resource is a verb.
func (c *Control) Resource(_ context.Context, id uuid.UUID, rid intent.ResourceID) (intent.ResourceDetail, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, err := c.env(id)
	if err != nil {
		return intent.ResourceDetail{}, err
	}
	d := intent.ResourceDetail{RequiresStatus: map[intent.ResourceID]intent.Status{}}
	found := false
	states := map[intent.ResourceID]intent.Status{}
	for _, row := range e.Rows {
		states[row.State.ID] = row.State.Status()
		if row.State.ID == rid {
			found, d.State = true, row.State
			if v, err := c.version(id, row.Version); err == nil {
				for _, r := range v.Resources {
					if r.ID == rid {
						d.Resource = r
					}
				}
			}
		}
		if slices.Contains(row.Requires, rid) {
			d.Provides = append(d.Provides, row.State.ID)
		}
	}
	if !found {
		return d, missing("resource")
	}
	for _, r := range d.Resource.Requires {
		d.RequiresStatus[r] = states[r]
	}
	if h := e.History[rid]; len(h) > 0 {
		d.FirstGenerated = h[0].Date
	}
	return d, nil
}

// ResourceHistory is a verb.
func (c *Control) ResourceHistory(
	_ context.Context,
	id uuid.UUID,
	rid intent.ResourceID,
	q intent.ListQuery,
) (intent.Page[intent.ResourceHistory], error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, err := c.env(id)
	if err != nil {
		return intent.Page[intent.ResourceHistory]{}, err
	}
	return paginate(e.History[rid], q, func(x intent.ResourceHistory, _ string) (string, string) {
		return micro(x.Date), x.AttributeHash
	}, func(intent.ResourceHistory, string, string) bool { return true }), nil
}

// ResourceLogs is a verb.
func (c *Control) ResourceLogs(
	_ context.Context,
	id uuid.UUID,
	rid intent.ResourceID,
	q intent.ListQuery,
) (intent.Page[intent.ResourceLog], error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, err := c.env(id)
	if err != nil {
		return intent.Page[intent.ResourceLog]{}, err
	}
	var all []intent.ResourceLog
	for _, a := range e.Acts {
		if a.Resource != rid {
			continue
		}
		for _, line := range a.Messages {
			all = append(all, intent.ResourceLog{Action: a.ID, Kind: a.Kind, LogLine: line})
		}
	}
	return paginate(all, q, func(x intent.ResourceLog, _ string) (string, string) { return micro(x.Time), "" },
		func(x intent.ResourceLog, name, v string) bool {
			switch name {
			case "action":
				return string(x.Kind) == v
			case "message":
				return part(x.Message, v)
			case "timestamp":
				return inRange(micro(x.Time), v)
			}
			order := []string{"TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"}
			return slices.Index(order, x.Level) >= slices.Index(order, v)
		}), nil
}

// Actions is a verb.
func (c *Control) Actions(
	_ context.Context,
	id uuid.UUID,
	rid intent.ResourceID,
	kind intent.ActionKind,
	limit int,
) ([]intent.Action, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, err := c.env(id)
	if err != nil {
		return nil, err
	}
	var out []intent.Action
	for _, a := range slices.Backward(e.Acts) {
		if (rid.IsZero() || a.Resource == rid) && (kind == "" || a.Kind == kind) && len(out) < limit {
			out = append(out, a)
		}
	}
	return out, nil
}

// SetParameter is a verb.
func (c *Control) SetParameter(_ context.Context, id uuid.UUID, p intent.Parameter) error {
	return c.change(id, "", func(e *Env) error {
		at := slices.IndexFunc(
			e.Params,
			func(x intent.Parameter) bool { return x.Name == p.Name && x.Resource == p.Resource },
		)
		if at >= 0 {
			p.ID = e.Params[at].ID
			e.Params[at] = p
			return nil
		}
		e.Params = append(e.Params, p)
		return nil
	})
}

// Parameters is a verb.
func (c *Control) Parameters(
	_ context.Context,
	id uuid.UUID,
	facts bool,
	q intent.ListQuery,
) (intent.Page[intent.Parameter], error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, err := c.env(id)
	if err != nil {
		return intent.Page[intent.Parameter]{}, err
	}
	var all []intent.Parameter
	for _, p := range e.Params {
		if facts == !p.Resource.IsZero() {
			all = append(all, p)
		}
	}
	column := func(x intent.Parameter, name string) string {
		switch name {
		case "source":
			return x.Source
		case "updated":
			return micro(x.Updated)
		case "resource_id":
			return x.Resource.String()
		case "expires":
			return strconv.FormatBool(x.Expires)
		}
		return x.Name
	}
	return paginate(all, q, func(x intent.Parameter, s string) (string, string) { return column(x, s), x.ID.String() },
		func(x intent.Parameter, name, v string) bool {
			if name == "updated" {
				return inRange(column(x, name), v)
			}
			return part(column(x, name), v)
		}), nil
}

// Parameter is a verb.
func (c *Control) Parameter(
	_ context.Context,
	id uuid.UUID,
	name string,
	rid intent.ResourceID,
) (intent.Parameter, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, err := c.env(id)
	if err != nil {
		return intent.Parameter{}, err
	}
	for _, p := range e.Params {
		if p.Name == name && p.Resource == rid {
			return p, nil
		}
	}
	return intent.Parameter{}, missing("parameter")
}

// DeleteParameter is a verb.
func (c *Control) DeleteParameter(_ context.Context, id uuid.UUID, name string, rid intent.ResourceID) error {
	return c.change(id, "", func(e *Env) error {
		before := len(e.Params)
		e.Params = slices.DeleteFunc(
			e.Params,
			func(p intent.Parameter) bool { return p.Name == name && p.Resource == rid },
		)
		if len(e.Params) == before {
			return missing("parameter")
		}
		return nil
	})
}
