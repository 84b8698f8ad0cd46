package api

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/google/uuid"

	"ordain.dev/ordain/api/graphql"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
)

// graphqlCalls declares the calls of GraphQL. Everybody who is logged in may send queries; each root of a query asks
// for the verb of the call that shows the same.
func (s *server) graphqlCalls(c *calls) {
	const path = "/api/v2/graphql"
	g := graphqlDoor{graphql.New(graphql.Config{
		Store: s.store, Logger: s.log,
		Allow: func(ctx context.Context, v access.Verb, environment uuid.UUID) error {
			return s.allow(ctx, v, inEnvironment{environment})
		},
		Settings: func(e intent.Environment) any { return settingsInGraph(e) },
	})}
	whole(c, http.MethodPost, path,
		"Answer a GraphQL query. The answer of GraphQL stands under data; its errors are texts.",
		access.ListEnvironments, g.answerQuery)
	v2(c, http.MethodGet, path+"/schema", "Show the schema of GraphQL, as an introspection query would.",
		access.ListEnvironments, g.showSchema)
}

// graphqlDoor answers the calls of GraphQL.
type graphqlDoor struct{ door *graphql.Door }

type graphqlQuery struct {
	Query     string         `arg:"query,required" max:"65536"`
	Variables map[string]any `arg:"variables"`
	Operation string         `arg:"operationName"`
}

// graphqlAnswer is the envelope of a result. It is the answer to a query that fails, too.
type graphqlAnswer struct {
	Data   graphqlResult `json:"data"`
	status int
}

type graphqlResult struct {
	Data       json.RawMessage `json:"data"`
	Errors     *[]string       `json:"errors"`
	Extensions map[string]any  `json:"extensions"`
}

func (a graphqlAnswer) ownStatus() int { return a.status }

func (g graphqlDoor) answerQuery(ctx context.Context, a graphqlQuery) (graphqlAnswer, error) {
	r := g.door.Do(ctx, a.Query, a.Variables, a.Operation)
	out := graphqlAnswer{graphqlResult{Data: r.Data, Extensions: r.Extensions}, r.Status()}
	if len(r.Errors) > 0 {
		out.Data.Errors = &r.Errors
	}
	return out, nil
}

func (g graphqlDoor) showSchema(context.Context, struct{}) (json.RawMessage, error) {
	return g.door.Schema()
}

// settingDetails is the value of a setting as GraphQL shows it.
type settingDetails struct {
	Value       any     `json:"value"`
	Protected   bool    `json:"protected"`
	ProtectedBy *string `json:"protected_by"`
}

type graphSettings struct {
	Settings   map[string]settingDetails    `json:"settings"`
	Definition map[string]settingDefinition `json:"definition"`
}

func settingsInGraph(e intent.Environment) graphSettings {
	out := graphSettings{map[string]settingDetails{}, settingDefinitions(e)}
	for _, def := range intent.Settings() {
		d := out.Definition[def.Name]
		out.Settings[def.Name] = settingDetails{def.Value(e.Settings), d.Protected, d.ProtectedBy}
	}
	return out
}
