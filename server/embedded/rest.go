package embedded

import (
	"context"
	"net/http"
	"path/filepath"

	"ordain.dev/ordain/api"
	"ordain.dev/ordain/gitsync"
	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/secret"
	"ordain.dev/ordain/server/access/people"
	"ordain.dev/ordain/server/access/tokens"
	"ordain.dev/ordain/server/build"
	"ordain.dev/ordain/server/control"
	"ordain.dev/ordain/server/forge"
	"ordain.dev/ordain/server/keeper"
	"ordain.dev/ordain/server/source"
)

// rest returns the REST API for handlers that call the server (get_fact, set_param …), in this process; there is no
// socket. It is made when the first handler asks. Keepers are not started: what they are asked for waits in the record,
// and the next run compiles anyway.
func (w *World) rest(ctx context.Context) http.Handler {
	handler, err := w.newREST(context.WithoutCancel(ctx))
	if err != nil {
		w.log.Error("handlers cannot call the server", "error", err)
		return http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			http.Error(rw, "the API could not be started; the log says why", http.StatusServiceUnavailable)
		})
	}
	return handler
}

func (w *World) newREST(ctx context.Context) (http.Handler, error) {
	key, err := secret.OpenKey(filepath.Join(w.layout.Server(), ".secret.key"))
	if err != nil {
		return nil, err
	}
	syncer, err := gitsync.New(gitsync.Config{Mirrors: w.layout.Mirrors(), Logger: w.log})
	if err != nil {
		return nil, err
	}
	builder, err := build.New(build.Config{
		Layout: w.layout, Maker: w.maker, Git: syncer, Program: w.cfg.Program, Logger: w.log,
	})
	if err != nil {
		return nil, err
	}
	events, sources := &bus.Bus{}, source.NewOpener(w.store, key)
	forges := &forge.Opener{Sources: sources, Version: w.cfg.Version}
	keepers, err := keeper.New(keeper.Config{
		Store: w.store, Bus: events, Logger: w.log, Layout: w.layout, Git: syncer, Builder: builder,
		Sources: sources, Forges: forges, Version: w.cfg.Version,
		NewDeployer: func(intent.Environment) (keeper.Deployer, error) {
			return nil, fault.New("embedded.rest", fault.Conflict, "`ordain deploy` has no keepers")
		},
	})
	if err != nil {
		return nil, err
	}
	ctl, err := control.New(control.Config{
		Store: w.store, Bus: events, Logger: w.log, Git: syncer, Sources: sources, Keepers: keepers,
		Forge: forge.NewService(forge.Config{
			Store: w.store, Bus: events, Logger: w.log, Git: syncer, Sources: sources, Forges: forges, Keepers: keepers,
			Now: now,
		}),
	})
	if err != nil {
		return nil, err
	}
	persons := people.New(people.Config{Store: w.store, Bus: events, Logger: w.log})
	proofs, err := tokens.New(ctx, tokens.Config{Store: w.store, People: persons, Key: key, Logger: w.log})
	if err != nil {
		return nil, err
	}
	return api.New(api.Config{
		Control: ctl, Store: w.store, Logger: w.log, Version: w.cfg.Version,
		Auth: proofs.API(persons.API()), People: persons, Tokens: proofs,
	})
}
