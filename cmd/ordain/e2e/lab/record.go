package lab

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ordain.dev/ordain/internal/intent"
)

// DeployedState describes what is deployed: the active version, the states of its
// resources, and the files.
func (p *Place) DeployedState() string {
	p.T.Helper()
	var b strings.Builder
	if v, err := p.Store.ActiveVersion(p.T.Context(), p.Env); err != nil {
		p.T.Fatal(err)
	} else if v != nil {
		fmt.Fprintf(&b, "version %d\n", v.Number)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Settled())) {
		r := p.Settled()[name]
		fmt.Fprintf(&b, "%s %s %v\n", name, r.State.Status(), r.State.LastRunAt)
	}
	entries, err := os.ReadDir(p.Site)
	if err != nil {
		p.T.Fatal(err)
	}
	for _, e := range entries {
		fmt.Fprintf(&b, "%s: %q\n", e.Name(), p.Note(e.Name()))
	}
	return b.String()
}

// Note returns the text of a deployed note, or why it cannot be read.
func (p *Place) Note(name string) string {
	p.T.Helper()
	text, err := os.ReadFile(filepath.Join(p.Site, name))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Attempts returns the deployments of a note, newest first.
func (p *Place) Attempts(name string) []intent.Action {
	p.T.Helper()
	row, ok := p.Settled()[name]
	if !ok {
		p.T.Fatalf("there is no note %s", name)
	}
	actions, err := p.Store.Actions(p.T.Context(), p.Env, row.State.ID, intent.ActionDeploy, 100)
	if err != nil {
		p.T.Fatal(err)
	}
	return actions
}

// LogOf returns the log of the newest deployment of a note.
func (p *Place) LogOf(name string) string {
	p.T.Helper()
	var b strings.Builder
	for _, m := range p.Attempts(name)[0].Messages {
		fmt.Fprintf(&b, "%s %s\n", m.Level, m.Message)
	}
	return b.String()
}

// Action returns the last deployment of the resource of this type whose id contains part.
func (p *Place) Action(kind, part string) intent.Action {
	p.T.Helper()
	page, err := p.Store.Resources(p.T.Context(), p.Env, intent.ListQuery{})
	if err != nil {
		p.T.Fatal(err)
	}
	for _, r := range page.Items {
		if r.State.ID.Type == kind && strings.Contains(r.State.ID.Value, part) {
			actions, err := p.Store.Actions(p.T.Context(), p.Env, r.State.ID, intent.ActionDeploy, 1)
			if err != nil || len(actions) != 1 {
				p.T.Fatalf("%s: %d actions, %v", r.State.ID, len(actions), err)
			}
			return actions[0]
		}
	}
	p.T.Fatalf("there is no %s with %s", kind, part)
	return intent.Action{}
}

func LogText(a intent.Action) string {
	var b strings.Builder
	for _, m := range a.Messages {
		fmt.Fprintf(&b, "%s %s %s\n", m.Level, m.Message, m.Arguments)
	}
	return b.String()
}

// Story describes all compiles and resources of the environment, for failures.
func (p *Place) Story() string {
	var b strings.Builder
	page, err := p.Store.Compiles(context.Background(), p.Env, intent.ListQuery{Sort: "requested"})
	if err != nil {
		return err.Error()
	}
	for _, c := range page.Items {
		_, stages, err := p.Store.Compile(context.Background(), c.ID)
		if err != nil {
			return err.Error()
		}
		fmt.Fprintf(&b, "compile %s by %s: success %v\n%s", c.ID, c.Trigger.Type, c.Success, Report(stages))
	}
	rows, err := p.Store.Resources(context.Background(), p.Env, intent.ListQuery{})
	if err != nil {
		return err.Error()
	}
	for _, r := range rows.Items {
		fmt.Fprintf(&b, "%s %s\n", r.State.ID, r.State.Status())
	}
	return b.String()
}

func Report(stages []intent.Stage) string {
	var b strings.Builder
	for _, s := range stages {
		code := "running"
		if s.ReturnCode != nil {
			code = fmt.Sprint(*s.ReturnCode)
		}
		fmt.Fprintf(&b, "== %s (%s) %s\n%s%s", s.Name, code, s.Command, s.Output, s.ErrOutput)
	}
	return b.String()
}
