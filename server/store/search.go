package store

import (
	"context"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
)

// FoundIn is what a search looks for a text in.
type FoundIn string

// What a search looks through.
const (
	FoundRun      FoundIn = "run"
	FoundVersion  FoundIn = "version"
	FoundWords    FoundIn = "words" // what people said when they rolled back, halted, paused, approved …
	FoundPull     FoundIn = "pull"
	FoundCluster  FoundIn = "cluster"
	FoundResource FoundIn = "resource"
)

// Found is one thing that a search found.
type Found struct {
	Environment intent.EnvironmentID
	Key         string // id of a run or resource, number of a version or pull request, name of a cluster
	Number      int    // of a version or pull request; the version of a run
	Commit      string
	Title       string // subject of a commit, title of a pull request, value of a resource
	By          string
	Words       string // what a person said; the type of a resource
	State       string
	At          *time.Time
	// Gone: a version or run of a preview, a resource that is an orphan, a cluster that is terminated.
	Gone bool
	// Exact: the text names it, and does not only occur in it.
	Exact bool
}

// Search looks for a text in one kind of things.
type Search struct {
	In           FoundIn
	Environments []intent.EnvironmentID
	Text         string
	Limit        int // of what is returned; 1,000 at most
}

// Of each environment, a search looks through the newest rows alone; all environments together have this many.
const (
	searchedRows      = 10_000
	searchedResources = 400_000
	searchedLeast     = 100 // of an environment
)

type foundRow struct {
	Environment uuid.UUID
	Key         string
	Number      int
	Commit      string
	Title       string
	By          string
	Words       string
	State       string
	At          *time.Time
	Preview     bool
	Exact       bool
}

func (r foundRow) value() (Found, error) {
	return Found{
		Environment: r.Environment, Key: r.Key, Number: r.Number, Commit: r.Commit, Title: r.Title, By: r.By,
		Words: r.Words, State: r.State, At: utc(r.At), Gone: r.Preview, Exact: r.Exact,
	}, nil
}

// Search returns what a search finds: what the text names first, then newest first.
func (s *Store) Search(ctx context.Context, q Search) ([]Found, error) {
	text := cleanText(q.Text)
	if text == "" || len(q.Environments) == 0 {
		return nil, nil
	}
	rows := searchedRows
	var sql string
	switch q.In {
	case FoundRun:
		sql = statements.SearchRuns
	case FoundVersion:
		sql = statements.SearchVersions
	case FoundWords:
		sql = statements.SearchWords
	case FoundPull:
		sql = statements.SearchPulls
	case FoundCluster:
		sql = statements.SearchClusters
	case FoundResource:
		sql, rows = statements.SearchResources, searchedResources
	default:
		return nil, nil
	}
	rows = max(rows/len(q.Environments), searchedLeast)
	limit := min(max(q.Limit, 1), 1000)
	return listed(ctx, s, "store.Search", foundRow.value, sql, q.Environments, LikeContains(text), text, rows, limit)
}
