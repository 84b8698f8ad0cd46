package tokens

import (
	"slices"
	"strings"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/access"
)

// clientRoles is what each type of client may do in its environment, as in Inmanta. None of them makes tokens, gives
// roles or reads the audit trail.
var clientRoles = map[string]access.Role{
	// Programs that act for people.
	access.APIClients: {
		Name: "clients of the API", BuiltIn: true,
		Labels: []access.Label{access.Read, access.Operate, access.WriteIntent},
		Verbs: []access.Verb{
			access.DeleteEnvironment, access.ClearEnvironment, access.DeleteVersion, access.ProtectSettings,
		},
	},
	// Compilers, which read parameters and export versions with their files.
	access.CompilerClients: {
		Name: "compilers", BuiltIn: true, Verbs: []access.Verb{
			access.SeeEnvironment, access.SetSetting, access.ProtectSettings, access.SeeParameters,
			access.SetParameters, access.SeeFiles, access.PutFiles, access.PutVersion, access.Release,
		},
	},
	// Agents, which read resources and report what they did.
	access.AgentClients: {
		Name: "agents", BuiltIn: true, Verbs: []access.Verb{
			access.SeeEnvironment, access.SetSetting, access.SeeParameters, access.SetParameters, access.SeeFiles,
			access.PutFiles, access.SeeResources, access.ReportResources, access.SeeDiscovered, access.WriteDiscovered,
		},
	},
}

// checkClients returns client types in one order, without repetitions.
func checkClients(types []string) ([]string, error) {
	var out []string
	for _, t := range types {
		t = strings.TrimSpace(t)
		if _, ok := clientRoles[t]; !ok {
			return nil, fault.New("tokens.clients", fault.Invalid, "there is no client type "+t).
				Hint("the client types are api, compiler and agent")
		}
		if !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	if len(out) == 0 {
		return nil, fault.New("tokens.clients", fault.Invalid, "a token needs a client type").
			Hint("the client types are api, compiler and agent")
	}
	slices.Sort(out)
	return out, nil
}

// clientBindings returns what clients of some types may do in a scope.
func clientBindings(types []string, scope access.Scope) []access.Binding {
	var out []access.Binding
	for _, t := range types {
		if r, ok := clientRoles[t]; ok {
			out = append(out, access.Binding{Role: r, Scope: scope})
		}
	}
	return out
}
