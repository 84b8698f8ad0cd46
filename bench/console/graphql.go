package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// barGraphQL is the p95 of each question that the reference's web console asks about resources.
const barGraphQL = 300 * time.Millisecond

// question is a GraphQL query about an environment, which has the name $env in it.
type question struct{ name, query string }

// questions are the list of resources, sorted as its columns can be, and the numbers above it.
func questions() []question {
	list := func(order string) string {
		return `query q($env: UUID!) { resources(filter: {environment: $env, isOrphan: false}, first: 50` + order + `) {
			totalCount pageInfo { hasNextPage endCursor }
			edges { node { resourceId agent resourceType resourceIdValue purged requiresLength modelVersion
				state { compliance lastHandlerRun lastHandlerRunAt blocked isDeploying } } } } }`
	}
	all := []question{{"no order", list("")}}
	for _, key := range []string{
		"agent", "resourceType", "resourceIdValue", "blocked", "compliance", "lastHandlerRun", "isDeploying",
	} {
		for _, direction := range []string{"asc", "desc"} {
			all = append(all, question{
				key + " " + direction, list(fmt.Sprintf(`, orderBy: [{key: "%s", order: "%s"}]`, key, direction)),
			})
		}
	}
	return append(all, question{"the summary", `query q($env: String!) { resourceSummary(environment: $env) {
		totalCount lastHandlerRun blocked compliance isDeploying } }`})
}

// measureGraphQL times the questions, one after the other.
func (b *browser) measureGraphQL(ctx context.Context, env string) (missed int, err error) {
	fmt.Println("GraphQL:")
	for _, q := range questions() {
		var took []time.Duration
		for range 40 {
			d, err := b.ask(ctx, env, q)
			if err != nil {
				return missed, err
			}
			took = append(took, d)
		}
		p95 := percentile(took, 95)
		fmt.Printf("  %-22s p50 %s ms, p95 %s ms, the first %s ms%s\n", q.name, ms(percentile(took, 50)), ms(p95),
			ms(took[0]), verdict(p95 <= barGraphQL, &missed))
	}
	return missed, nil
}

func (b *browser) ask(ctx context.Context, env string, q question) (time.Duration, error) {
	body, err := json.Marshal(map[string]any{"query": q.query, "variables": map[string]any{"env": env}})
	if err != nil {
		return 0, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.base+"/api/v2/graphql", bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "application/json")
	began := time.Now()
	answer, err := b.client.Do(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	var got struct {
		Data   struct{ Data any }
		Errors []any
	}
	if err := json.NewDecoder(answer.Body).Decode(&got); err != nil {
		return 0, err
	}
	if answer.StatusCode != http.StatusOK || len(got.Errors) > 0 {
		return 0, fmt.Errorf("GraphQL, %s: %s %v", q.name, answer.Status, got.Errors)
	}
	return time.Since(began), nil
}
