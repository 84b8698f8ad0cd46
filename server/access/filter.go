package access

import (
	"context"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
)

// TargetOf returns an environment as the target of a verb.
func TargetOf(e intent.Environment) Target {
	return Target{Project: e.ProjectID, Environment: e.ID, Tags: e.Tags}
}

// Visible returns those environments that the sender of a request may know of.
func Visible(ctx context.Context, environments []intent.Environment) []intent.Environment {
	p := Of(ctx)
	if p.SeesAll() {
		return environments
	}
	var out []intent.Environment
	for _, e := range environments {
		if p.Sees(TargetOf(e)) {
			out = append(out, e)
		}
	}
	return out
}

// VisibleProjects returns those projects that the sender may know of: those with a role of theirs, and those of the
// environments that they see.
func VisibleProjects(
	ctx context.Context, projects []intent.Project, environments []intent.Environment,
) []intent.Project {
	p := Of(ctx)
	if p.SeesAll() {
		return projects
	}
	around := map[uuid.UUID]bool{}
	for _, e := range Visible(ctx, environments) {
		around[e.ProjectID] = true
	}
	var out []intent.Project
	for _, project := range projects {
		if around[project.ID] || p.Sees(Target{Project: project.ID}) {
			out = append(out, project)
		}
	}
	return out
}
