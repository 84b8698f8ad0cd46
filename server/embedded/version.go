package embedded

import (
	"context"
	"errors"
	"fmt"
	"os/user"
	"time"

	"ordain.dev/ordain/compiler/export"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/keeper"
	"ordain.dev/ordain/server/store"
)

// versionsKept is how many versions are kept besides the active one.
const versionsKept = 20

// actionsKept is how long what handlers did and said is kept.
const actionsKept = 30 * 24 * time.Hour

// StoreVersion stores a document as a version and returns its number. A preview is for a dry run and is never released.
func (w *World) StoreVersion(
	ctx context.Context, doc *export.Document, from intent.FolderOrigin, preview bool,
) (int, error) {
	origin := intent.Provenance{
		Folder: &from, Author: from.User,
		Trigger: intent.Trigger{Type: "cli", Message: "ordain deploy by " + from.User + " on " + from.Host},
		Modules: doc.Modules, CompilerPython: doc.Python, Ordain: w.cfg.Version,
		UnmanagedAgents: doc.UnmanagedAgents,
	}
	v, err := keeper.NewVersion(w.env.ID, origin, doc)
	if err != nil {
		return 0, err
	}
	v.Preview = preview
	if err := keeper.StoreFiles(ctx, w.store, w.env.ProjectID, doc); err != nil {
		return 0, err
	}
	return w.store.StoreVersion(ctx, v, now())
}

// Release makes a version the intent. If that takes away so much that a person has to confirm it, it returns a fault of
// the kind Conflict, unless confirmed.
func (w *World) Release(ctx context.Context, number int, confirmed bool) error {
	err := w.store.ReleaseVersion(ctx, w.env.ID, number, now())
	var held *store.HeldError
	if !errors.As(err, &held) {
		return err
	}
	if !held.Hold.Confirmable() {
		return fault.New("embedded.Release", fault.Conflict, "nothing was deployed: "+held.Hold.Text)
	}
	if !confirmed {
		return fault.New("embedded.Release", fault.Conflict,
			fmt.Sprintf("nothing was deployed, because much of what is deployed would go: %s", held.Hold.Text)).
			Hint("look with --dry-run at what goes; if that is what you want, add --confirm")
	}
	by := "somebody"
	if u, err := user.Current(); err == nil {
		by = u.Username
	}
	return w.store.ConfirmVersion(ctx, w.env.ID, number, intent.Confirmation{By: by, At: now()})
}

// tidy removes old versions, and records of actions and virtual environments that nothing used for long.
func (w *World) tidy(ctx context.Context) {
	_, err := w.store.PruneVersions(ctx, w.env.ID, versionsKept)
	if err == nil {
		_, err = w.store.DeleteActionsBefore(ctx, w.env.ID, now().Add(-actionsKept))
	}
	if err == nil {
		err = w.executors.Clean(ctx)
	}
	if err != nil && ctx.Err() == nil {
		w.log.Warn("old records could not be removed", "error", err)
	}
}

// now is the time in the precision of the record.
func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }
