// Package schema holds schema.graphql, and what gqlgen generates from it: types (models.go) and the execution of
// queries (generated.go). The resolvers are in the package above.
package schema

//go:generate go tool gqlgen generate --config gqlgen.yml
