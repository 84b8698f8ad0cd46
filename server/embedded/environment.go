package embedded

import (
	"context"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/compiler/plugin"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// settings are those of the environment. Nothing happens by itself, and every run tries everything again: the person
// who runs the command is there and sees what fails.
var settings = map[string]any{
	"autostart_agent_deploy_interval": "0",
	"autostart_agent_repair_interval": "0",
	"max_attempts":                    0,
	"heal_limit":                      0,
	"breaker_failures":                0,
}

// openEnvironment reads the one environment of the record, and makes it in the first run.
func (w *World) openEnvironment(ctx context.Context) error {
	const op = "embedded.Open"
	all, err := w.store.Environments(ctx)
	if err != nil {
		return err
	}
	switch len(all) {
	case 1:
		w.env = all[0]
		return nil
	case 0:
	default:
		return fault.New(op, fault.Conflict, w.cfg.StateDir+" is the state of a server, which has other environments").
			Hint("name another folder with --state-dir")
	}
	name := filepath.Base(w.cfg.Project)
	projects, err := w.store.Projects(ctx)
	if err != nil {
		return err
	}
	project := intent.Project{ID: uuid.New(), Name: name}
	if len(projects) > 0 { // an earlier run was interrupted here
		project = projects[0]
	} else if err := w.store.CreateProject(ctx, project); err != nil {
		return err
	}
	id := w.cfg.Environment
	if id == uuid.Nil {
		id = uuid.New()
	}
	if err := w.store.CreateEnvironment(ctx, intent.Environment{
		ID: id, ProjectID: project.ID, Name: name, Source: intent.Source{URL: w.cfg.Project},
		Settings: settings, Created: time.Now().UTC().Truncate(time.Microsecond),
	}, nil); err != nil {
		return err
	}
	w.env, err = w.store.Environment(ctx, id)
	return err
}

// Known returns what a compile may ask for: the environment, its parameters and the facts of its resources.
func (w *World) Known(ctx context.Context) (*plugin.Known, error) {
	k := &plugin.Known{
		Environment: plugin.Environment{
			ID: w.env.ID.String(), Name: w.env.Name, Project: w.env.ProjectID.String(),
		},
		Facts: map[string]map[string]string{},
	}
	for _, facts := range []bool{false, true} {
		q := intent.ListQuery{Limit: 1000, Sort: "name"}
		for {
			page, err := w.store.Parameters(ctx, w.env.ID, facts, q)
			if err != nil {
				return nil, err
			}
			for _, p := range page.Items {
				resource := ""
				if !p.Resource.IsZero() {
					resource = p.Resource.String()
				}
				if k.Facts[resource] == nil {
					k.Facts[resource] = map[string]string{}
				}
				k.Facts[resource][p.Name] = p.Value
			}
			if page.After == 0 || len(page.Items) == 0 {
				break
			}
			last := page.Items[len(page.Items)-1]
			q.After = &intent.Bound{Value: &last.Name, ID: last.ID.String()}
		}
	}
	return k, nil
}
