package api

import (
	"reflect"
	"testing"

	"ordain.dev/ordain/server/access"
)

// Every call finds what its verb works on before it does anything: the types of its arguments say where the id stands.
func TestEveryCallNamesItsTarget(t *testing.T) {
	s := &server{}
	for _, d := range s.calls(newRouter()) {
		verb, _ := d.verb.Define()
		args := reflect.New(d.args).Interface()
		_, inEnvironment := args.(onEnvironment)
		_, inProject := args.(onProject)
		if _, later := args.(laterChecked); later {
			continue
		}
		reach := access.OnServer
		switch {
		case inEnvironment:
			reach = access.OnEnvironment
		case inProject:
			reach = access.OnProject
		}
		if reach == access.OnProject && verb.Reach == access.OnServer {
			continue // what administrators of the server do to a project, which who may not see it does not learn of
		}
		if reach != verb.Reach {
			t.Errorf("%s %s: the verb %s works on the %s, but the arguments name the %s",
				d.method, d.path, d.verb, verb.Reach, reach)
		}
	}
}
