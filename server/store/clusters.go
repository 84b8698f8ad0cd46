package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

type clusterRow struct {
	ID          uuid.UUID
	Environment uuid.UUID
	Number      int64
	Name        string
	State       string
	Owner       string
	Made        time.Time
	Ended       *time.Time
	Wanted      *json.RawMessage
	WantedAt    string
	Applied     *json.RawMessage
	AppliedAt   string
	Expires     *time.Time
	Noticed     *time.Time
	Paused      bool
	MayDelete   bool
	Retry       bool
	Problem     string
}

func (r clusterRow) value() (intent.Cluster, error) {
	return intent.Cluster{
		ID: r.ID, Environment: r.Environment, Number: r.Number, Name: r.Name, State: intent.ClusterState(r.State),
		Owner: r.Owner, Made: r.Made.UTC(), Ended: utc(r.Ended), Wanted: rawOrNil(r.Wanted), WantedAt: r.WantedAt,
		Applied: rawOrNil(r.Applied), AppliedAt: r.AppliedAt, Expires: utc(r.Expires), Noticed: utc(r.Noticed),
		Paused: r.Paused, MayDelete: r.MayDelete, Retry: r.Retry, Problem: r.Problem,
	}, nil
}

func rawOrNil(r *json.RawMessage) json.RawMessage {
	if r == nil {
		return nil
	}
	return *r
}

// jsonOrNull is JSON for a column that may be NULL.
func jsonOrNull(r json.RawMessage) any {
	if r == nil {
		return nil
	}
	return string(r)
}

// Clusters lists the clusters of an environment, those that ended only if ended is set.
func (s *Store) Clusters(ctx context.Context, env intent.EnvironmentID, ended bool) ([]intent.Cluster, error) {
	return listed(ctx, s, "store.Clusters", clusterRow.value, statements.ClusterRows, env, nil, nil, ended)
}

// AllClusters lists the clusters of all environments that did not end.
func (s *Store) AllClusters(ctx context.Context) ([]intent.Cluster, error) {
	return listed(ctx, s, "store.Clusters", clusterRow.value, statements.ClusterRows, nil, nil, nil, false)
}

// Cluster returns the cluster of an environment that has a name and did not end.
func (s *Store) Cluster(ctx context.Context, env intent.EnvironmentID, name string) (intent.Cluster, error) {
	return s.oneCluster(ctx, env, name, nil, false)
}

// ClusterByID returns a cluster, also one that ended.
func (s *Store) ClusterByID(ctx context.Context, id uuid.UUID) (intent.Cluster, error) {
	return s.oneCluster(ctx, nil, nil, id, true)
}

func (s *Store) oneCluster(ctx context.Context, args ...any) (intent.Cluster, error) {
	all, err := listed(ctx, s, "store.Cluster", clusterRow.value, statements.ClusterRows, args...)
	if err == nil && len(all) == 0 {
		err = fault.New("store.Cluster", fault.NotFound, "there is no such cluster")
	}
	if err != nil {
		return intent.Cluster{}, err
	}
	return all[0], nil
}

// AddCluster records a cluster that a version has, as the owner of its environment.
func (s *Store) AddCluster(ctx context.Context, c intent.Cluster) error {
	return s.writeOwned(ctx, c.Environment, "store.AddCluster", nil, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, statements.ClusterAdd, c.ID, c.Environment, c.Name, cleanText(c.Owner),
			jsonOrNull(c.Wanted), c.WantedAt, c.Expires)
		return err
	})
}

// WantCluster records what a version wants of a cluster, as the owner of its environment.
func (s *Store) WantCluster(ctx context.Context, c intent.Cluster) error {
	return s.writeOwned(ctx, c.Environment, "store.WantCluster", nil, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, statements.ClusterWant, c.ID, jsonOrNull(c.Wanted), c.WantedAt, c.Expires)
		return err
	})
}

// SettleCluster records how a cluster is when nothing of it runs, as the owner of its environment. Applied is recorded
// if reached is set. A cluster that is terminated leaves no secrets behind.
func (s *Store) SettleCluster(ctx context.Context, c intent.Cluster, reached bool) error {
	return s.writeOwned(ctx, c.Environment, "store.SettleCluster", nil, func(tx pgx.Tx) error {
		return settle(ctx, tx, c, reached)
	})
}

func settle(ctx context.Context, tx pgx.Tx, c intent.Cluster, reached bool) error {
	if _, err := tx.Exec(ctx, statements.ClusterSettle, c.ID, string(c.State), cleanText(c.Problem), reached,
		jsonOrNull(c.Applied), c.AppliedAt); err != nil {
		return err
	}
	if reached {
		if _, err := tx.Exec(ctx, statements.ClusterNodeSettle, c.ID); err != nil {
			return err
		}
	}
	if c.State != intent.ClusterTerminated || c.Wanted != nil { // a namesake is wanted already
		return nil
	}
	_, err := tx.Exec(ctx, statements.ClusterSecretsDelete, c.Environment, c.Name)
	return err
}

// NoteClusterProblem records why a cluster is not as wanted, for people; empty: nothing is wrong.
func (s *Store) NoteClusterProblem(ctx context.Context, id uuid.UUID, text string) error {
	return s.exec(ctx, "store.NoteClusterProblem", statements.ClusterProblem, id, cleanText(text))
}

// PauseCluster stops handing out tasks of a cluster, or goes on.
func (s *Store) PauseCluster(ctx context.Context, id uuid.UUID, paused bool) error {
	return s.exec(ctx, "store.PauseCluster", statements.ClusterPause, id, paused)
}

// AllowClusterEnd records that a person asked for the end of a cluster, or took that back.
func (s *Store) AllowClusterEnd(ctx context.Context, id uuid.UUID, may bool) error {
	return s.exec(ctx, "store.AllowClusterEnd", statements.ClusterMayDelete, id, may)
}

// RetryCluster records that a person asked for another job after one failed.
func (s *Store) RetryCluster(ctx context.Context, id uuid.UUID) error {
	return s.exec(ctx, "store.RetryCluster", statements.ClusterRetry, id)
}

// NoteClusterNoticed records that the end of a lease was announced.
func (s *Store) NoteClusterNoticed(ctx context.Context, id uuid.UUID) error {
	return s.exec(ctx, "store.NoteClusterNoticed", statements.ClusterNoticed, id)
}

// exec runs one statement.
func (s *Store) exec(ctx context.Context, op, sql string, args ...any) error {
	return s.write(ctx, op, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, sql, args...)
		return err
	})
}

// BusyClusters lists the environments where something may have to be done for a cluster.
func (s *Store) BusyClusters(ctx context.Context) (out []intent.EnvironmentID, err error) {
	err = s.read(ctx, "store.BusyClusters", func(q querier) error {
		rows, err := q.Query(ctx, statements.ClusterBusy)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
		return err
	})
	return out, err
}

// ClusterUse is how much of the cluster service a project uses, and what it may.
type ClusterUse struct {
	Clusters, Nodes       int
	Workers               int
	MaxClusters, MaxNodes *int // nil: no limit
}

// DefaultWorkers is how many tasks of a project run at a time in the server, unless an administrator says otherwise.
const DefaultWorkers = 4

// ClusterUseOf returns how much of the cluster service a project uses, and what it may.
func (s *Store) ClusterUseOf(ctx context.Context, project uuid.UUID) (use ClusterUse, err error) {
	err = s.read(ctx, "store.ClusterUse", func(q querier) error {
		use = ClusterUse{Workers: DefaultWorkers}
		if err := q.QueryRow(ctx, statements.ClustersOf, project).Scan(&use.Clusters, &use.Nodes); err != nil {
			return err
		}
		err := q.QueryRow(ctx, statements.ClusterTenant, project).Scan(&use.Workers, &use.MaxClusters, &use.MaxNodes)
		if isNoRows(err) {
			return nil
		}
		return err
	})
	return use, err
}

// ClustersUsing names up to twenty clusters that pin an entity of the catalogue, in that version unless it is zero.
// project nil: in all projects.
func (s *Store) ClustersUsing(
	ctx context.Context, project *uuid.UUID, kind, name string, version int,
) (out []string, err error) {
	var pinned *int
	if version != 0 {
		pinned = &version
	}
	err = s.read(ctx, "store.ClustersUsing", func(q querier) error {
		rows, err := q.Query(ctx, statements.ClusterUsing, project, kind, name, pinned)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	return out, err
}

// VersionClusters returns the manifests of a version by name, as JSON; nil: nothing is known about its clusters.
func (s *Store) VersionClusters(
	ctx context.Context, env intent.EnvironmentID, version int,
) (manifests json.RawMessage, err error) {
	err = s.read(ctx, "store.VersionClusters", func(q querier) error {
		err := q.QueryRow(ctx, statements.VersionClusters, env, version).Scan(&manifests)
		if isNoRows(err) {
			return nil
		}
		return err
	})
	return manifests, err
}

// ReleasedClusters are the manifests of the active version.
type ReleasedClusters struct {
	Version   int
	Manifests json.RawMessage // by name
	Commit    string
}

// ActiveClusters returns the manifests of the active version; nil: there is none, or nothing is known about its
// clusters.
func (s *Store) ActiveClusters(ctx context.Context, env intent.EnvironmentID) (out *ReleasedClusters, err error) {
	err = s.read(ctx, "store.ActiveClusters", func(q querier) error {
		var r ReleasedClusters
		var provenance []byte
		err := q.QueryRow(ctx, statements.VersionClustersActive, env).Scan(&r.Version, &r.Manifests, &provenance)
		if isNoRows(err) {
			return nil
		}
		if err != nil {
			return err
		}
		var from struct {
			Commit string `json:"commit"`
		}
		if err := json.Unmarshal(provenance, &from); err != nil {
			return err
		}
		r.Commit, out = from.Commit, &r
		return nil
	})
	return out, err
}

// SetClusterSecrets keeps sealed fields that a user gave for a cluster.
func (s *Store) SetClusterSecrets(
	ctx context.Context, env intent.EnvironmentID, cluster string, sealed map[string][]byte,
) error {
	return s.write(ctx, "store.SetClusterSecrets", func(tx pgx.Tx) error {
		for field, text := range sealed {
			if _, err := tx.Exec(ctx, statements.ClusterSecretSet, env, cluster, field, text); err != nil {
				return err
			}
		}
		return nil
	})
}

// ClusterSecrets returns the sealed fields of a cluster.
func (s *Store) ClusterSecrets(
	ctx context.Context, env intent.EnvironmentID, cluster string,
) (map[string][]byte, error) {
	out := map[string][]byte{}
	err := s.read(ctx, "store.ClusterSecrets", func(q querier) error {
		type row struct {
			Field  string
			Sealed []byte
		}
		rows, err := many[row](ctx, q, statements.ClusterSecrets, env, cluster)
		for _, r := range rows {
			out[r.Field] = r.Sealed
		}
		return err
	})
	return out, err
}

// ForgetClusterSecrets deletes the sealed fields of a cluster.
func (s *Store) ForgetClusterSecrets(ctx context.Context, env intent.EnvironmentID, cluster string) error {
	return s.exec(ctx, "store.ForgetClusterSecrets", statements.ClusterSecretsDelete, env, cluster)
}

type clusterNodeRow struct {
	Cluster    uuid.UUID
	Number     int
	Hostname   string
	Hardware   string
	Image      string
	Provider   string
	Services   json.RawMessage
	State      string
	Ready      bool
	Automators []string
	Facts      json.RawMessage
	Sealed     []byte
	Made       *time.Time
	Gone       *time.Time
}

func (r clusterNodeRow) value() (intent.ClusterNode, error) {
	return intent.ClusterNode{
		Cluster: r.Cluster, Number: r.Number, Hostname: r.Hostname, Hardware: r.Hardware, Image: r.Image,
		Provider: r.Provider, Services: r.Services, State: intent.ClusterNodeState(r.State), Ready: r.Ready,
		Automators: r.Automators, Facts: r.Facts, Sealed: r.Sealed, Made: utc(r.Made), Gone: utc(r.Gone),
	}, nil
}

// ClusterNodes lists the nodes of clusters, those that are gone only if gone is set.
func (s *Store) ClusterNodes(ctx context.Context, gone bool, clusters ...uuid.UUID) ([]intent.ClusterNode, error) {
	return listed(ctx, s, "store.ClusterNodes", clusterNodeRow.value, statements.ClusterNodes, clusters, gone)
}

// PoolMachine lends one of the machines of a pool to a node, and returns it: the one that the node has already, or the
// first that no node of any project has. Conflict: all are lent.
func (s *Store) PoolMachine(
	ctx context.Context, project uuid.UUID, provider string, machines []string, cluster uuid.UUID, node int,
) (lent string, err error) {
	const op = "store.PoolMachine"
	err = s.write(ctx, op, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, statements.PoolLock); err != nil {
			return err
		}
		type loan struct {
			Machine string
			Cluster uuid.UUID
			Node    int
		}
		loans, err := many[loan](ctx, tx, statements.PoolLoans, machines, cluster, node)
		if err != nil {
			return err
		}
		taken := map[string]bool{}
		for _, l := range loans {
			if l.Cluster == cluster && l.Node == node {
				lent = l.Machine
				return nil
			}
			taken[l.Machine] = true
		}
		for _, m := range machines {
			if !taken[m] {
				lent = m
				_, err := tx.Exec(ctx, statements.PoolLend, project, provider, m, cluster, node)
				return err
			}
		}
		return fault.New(op, fault.Conflict, "all machines of the pool "+provider+" are lent").
			Hint("add machines to the provider, or delete nodes or clusters that use it")
	})
	return lent, err
}

// LentMachine returns the machine of a pool that a node has; empty: it has none.
func (s *Store) LentMachine(ctx context.Context, cluster uuid.UUID, node int) (machine string, err error) {
	err = s.read(ctx, "store.LentMachine", func(q querier) error {
		var c uuid.UUID
		var n int
		err := q.QueryRow(ctx, statements.PoolLoans, []string{}, cluster, node).Scan(&machine, &c, &n)
		if isNoRows(err) {
			return nil
		}
		return err
	})
	return machine, err
}

// TidyClusters forgets jobs beyond the newest of each cluster, and clusters that ended before a time.
func (s *Store) TidyClusters(ctx context.Context, jobs int, ended time.Time) error {
	return s.write(ctx, "store.TidyClusters", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, statements.ClusterJobForget, jobs); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, statements.ClusterForget, ended)
		return err
	})
}
