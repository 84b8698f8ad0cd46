package promote

import (
	"fmt"
	"strings"

	"ordain.dev/ordain/internal/intent"
)

// Source finds the environment that e follows among all environments of a server;
// nil when e follows none. The error says why it cannot be followed: then nothing
// is promoted to e.
func Source(all []intent.Environment, e intent.Environment) (*intent.Environment, error) {
	name := e.Follows()
	if name == "" {
		return nil, nil
	}
	source := named(all, e.ProjectID, name)
	switch {
	case source == nil:
		for _, other := range all {
			if other.Name == name {
				return nil, fmt.Errorf("the environment %s is not of the project of %s, "+
					"and only environments of one project follow each other", name, e.Name)
			}
		}
		return nil, fmt.Errorf("there is no environment %s in the project of %s", name, e.Name)
	case source.ID == e.ID:
		return nil, fmt.Errorf("the environment %s cannot follow itself", e.Name)
	case e.Source.URL == "":
		return nil, fmt.Errorf("the environment %s is not bound to a repository", e.Name)
	case source.Source.URL != e.Source.URL:
		return nil, fmt.Errorf("the environment %s is of another repository than %s, "+
			"so that it cannot have the same commit", name, e.Name)
	}
	way := []string{e.Name, name}
	for at := source; at != nil && at.Follows() != ""; {
		next := named(all, at.ProjectID, at.Follows())
		if next == nil {
			break
		}
		way = append(way, next.Name)
		if next.ID == e.ID {
			return nil, fmt.Errorf("that would be a circle: %s", strings.Join(way, " follows "))
		}
		if len(way) > len(all)+1 {
			break // a circle that e is no part of
		}
		at = next
	}
	return source, nil
}

func named(all []intent.Environment, project intent.ProjectID, name string) *intent.Environment {
	for i := range all {
		if all[i].ProjectID == project && all[i].Name == name {
			return &all[i]
		}
	}
	return nil
}
