package graphql

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/99designs/gqlgen/graphql/introspection"

	"ordain.dev/ordain/internal/fault"
)

// Schema returns the schema in the form of an introspection result: {"__schema": …}.
func (d *Door) Schema() (json.RawMessage, error) { return d.schema() }

func (d *Door) introspect() (json.RawMessage, error) {
	result := d.Do(context.Background(), introspection.Query, nil, "")
	if len(result.Errors) > 0 {
		return nil, fault.Wrap("graphql.Schema", fault.Internal, errors.New(result.Errors[0]))
	}
	return result.Data, nil
}
