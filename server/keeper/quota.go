package keeper

import (
	"context"
	"sync"
	"time"

	"ordain.dev/ordain/internal/diskuse"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/layout"
	"ordain.dev/ordain/server/store"
)

// takeTurn waits for a turn within the quota of the environment's project.
func (k *keeper) takeTurn(ctx context.Context, from *turns) (*turn, error) {
	project := k.remembered().ProjectID
	q, err := k.cfg.Store.Quota(ctx, project)
	if err != nil {
		return nil, err
	}
	k.projects.limit(project, q)
	return from.take(ctx, k.env, project)
}

// QuotaChanged applies the quota of a project to what runs.
func (r *Registry) QuotaChanged(ctx context.Context, id intent.ProjectID, q intent.Quota) error {
	r.projects.limit(id, q)
	envs, err := r.environmentsOf(ctx, id)
	for _, e := range envs {
		r.disk.forget(e.ID) // the person who changed a quota wants to see the present use
		if err == nil {
			err = r.cfg.Store.Ask(ctx, e.ID, intent.RequestLook, nil)
		}
		r.Attend(ctx, e.ID)
	}
	return err
}

// ProjectUse returns how much a project uses. Executors are those of this process.
func (r *Registry) ProjectUse(ctx context.Context, id intent.ProjectID) (intent.Usage, error) {
	use, err := r.cfg.Store.ProjectUse(ctx, id)
	if err != nil {
		return nil, err
	}
	envs, err := r.environmentsOf(ctx, id)
	if err != nil {
		return nil, err
	}
	use[intent.QuotaDisk] = r.disk.of(envs)
	use[intent.QuotaExecutors] = 0
	for _, e := range envs {
		if d := r.Deployer(e.ID); d != nil {
			use[intent.QuotaExecutors] += int64(len(d.Executors().Processes))
		}
	}
	return use, nil
}

// CheckDisk fails when the project of an environment has used up its disk.
func (r *Registry) CheckDisk(ctx context.Context, e intent.Environment) error {
	q, err := r.cfg.Store.Quota(ctx, e.ProjectID)
	if err != nil {
		return err
	}
	most, limited := q[intent.QuotaDisk]
	if !limited {
		return nil
	}
	envs, err := r.environmentsOf(ctx, e.ProjectID)
	if err != nil {
		return err
	}
	use := r.disk.of(envs)
	if use < most {
		return nil
	}
	return store.QuotaExceeded("keeper.CheckDisk", &intent.QuotaError{
		Project: e.ProjectName, Kind: intent.QuotaDisk, Use: use, Limit: most,
	})
}

func (r *Registry) environmentsOf(ctx context.Context, id intent.ProjectID) (inside []intent.Environment, err error) {
	all, err := r.cfg.Store.Environments(ctx)
	for _, e := range all {
		if e.ProjectID == id {
			inside = append(inside, e)
		}
	}
	return inside, err
}

// diskAge is how long the size of an environment's folder counts. To measure it takes a look at every file.
const diskAge = time.Minute

// diskUse measures the folders of environments, and remembers their sizes for a while. It is safe for concurrent use.
type diskUse struct {
	layout *layout.Layout
	now    func() time.Time

	mu       sync.Mutex
	measured map[intent.EnvironmentID]*folderSize
}

// folderSize is measured by one caller at a time; the others wait for it.
type folderSize struct {
	mu    sync.Mutex
	bytes int64
	at    time.Time
}

// of returns the bytes of the folders of environments.
func (d *diskUse) of(envs []intent.Environment) (total int64) {
	for _, e := range envs {
		total += d.one(e.ID)
	}
	return total
}

func (d *diskUse) one(env intent.EnvironmentID) int64 {
	d.mu.Lock()
	if d.measured == nil {
		d.measured = map[intent.EnvironmentID]*folderSize{}
	}
	size := d.measured[env]
	if size == nil {
		size = &folderSize{}
		d.measured[env] = size
	}
	d.mu.Unlock()
	size.mu.Lock()
	defer size.mu.Unlock()
	if now := d.now(); size.at.IsZero() || now.Sub(size.at) >= diskAge {
		size.bytes, size.at = diskuse.Of(d.layout.Environment(env).Dir()), now
	}
	return size.bytes
}

// forget makes the next caller measure an environment again.
func (d *diskUse) forget(env intent.EnvironmentID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.measured, env)
}
