package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ordain.dev/ordain/bench/peer"
)

// upgrade goes through all steps once.
func upgrade(ctx context.Context, c config) error {
	in, err := newInstallation(ctx, c)
	if err != nil {
		return err
	}
	defer in.stop()

	old, err := in.start(ctx, c.oldBinary, "old", "api,process")
	if err != nil {
		return err
	}
	for n := range c.environments {
		if err := in.bind(ctx, old, n); err != nil {
			return err
		}
	}
	if err := in.step(ctx, "the old server alone", false, nil); err != nil {
		return err
	}
	before, err := in.record.SchemaSteps(ctx)
	if err != nil {
		return err
	}

	doors, err := in.start(ctx, c.newBinary, "new-api", "api")
	if err != nil {
		return err
	}
	after, err := in.record.SchemaSteps(ctx)
	if err != nil {
		return err
	}
	if err := in.tellSchema(before, after); err != nil {
		return err
	}
	// Only the old one has the role process, so it does all of this.
	onlyOld := func() ([]string, error) { return in.notOwnedBy(ctx, old) }
	if err := in.step(ctx, "the old server on the new schema", true, onlyOld); err != nil {
		return err
	}
	if err := in.changeThrough(ctx, doors); err != nil {
		return err
	}

	// It was alive while the schema changed. When it is killed now, it has to start on what it does not know.
	in.end(old, true)
	if old, err = in.start(ctx, c.oldBinary, "old", "api,process"); err != nil {
		return fmt.Errorf("the old program does not start on the new schema: %w", err)
	}
	if err := in.step(ctx, "the old server, killed and started on the new schema", true, onlyOld); err != nil {
		return err
	}

	replacement, err := in.start(ctx, c.newBinary, "new", "api,process")
	if err != nil {
		return err
	}
	if len(in.environs) > 1 {
		if err := in.await(ctx, "environments to move to the new server", func() ([]string, error) {
			left, err := in.notOwnedBy(ctx, replacement)
			if len(left) <= (len(in.environs)+1)/2 {
				left = nil
			}
			return left, err
		}); err != nil {
			return err
		}
	}
	if err := in.step(ctx, "both servers", true, nil); err != nil {
		return err
	}

	// People push while the old one ends.
	if err := in.pushAll(ctx); err != nil {
		return err
	}
	in.end(old, false)
	return in.step(ctx, "the new server alone", true, func() ([]string, error) {
		return in.notOwnedBy(ctx, replacement)
	})
}

// step pushes to every environment, if push is set, waits until all is deployed and, unless
// it is nil, nothing is left of others, and checks.
func (in *installation) step(ctx context.Context, name string, push bool, others func() ([]string, error)) error {
	if others != nil {
		if err := in.await(ctx, name+" to own all environments", others); err != nil {
			return err
		}
	}
	if push {
		if err := in.pushAll(ctx); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := in.await(ctx, "all to be deployed", func() ([]string, error) { return in.undeployed(ctx) }); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := in.check(ctx); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if others != nil {
		// An environment may change hands once more while processes learn of each other.
		if err := in.await(ctx, name+" to own all environments still", others); err != nil {
			return err
		}
	}
	fmt.Fprintf(in.out, "%s: all deployed, once; everybody answers\n", name)
	return nil
}

// changeThrough pushes, and asks for it through the API of a new server while an old one does
// the work: what one records for the other is understood.
func (in *installation) changeThrough(ctx context.Context, s *peer.Server) error {
	for _, e := range in.environs {
		if err := e.repo.Change(ctx, 1); err != nil {
			return err
		}
		if err := e.repo.Push(ctx); err != nil {
			return err
		}
		if err := s.Trigger(ctx, e.id); err != nil {
			return err
		}
	}
	err := in.await(ctx, "what the new API was asked for", func() ([]string, error) { return in.undeployed(ctx) })
	if err != nil {
		return err
	}
	return in.check(ctx)
}

// tellSchema prints which steps the new program added. The steps of before must be there still.
func (in *installation) tellSchema(before, after []string) error {
	if len(after) < len(before) || !slices.Equal(before, after[:len(before)]) {
		return fmt.Errorf("the new program made %v of the schema %v", after, before)
	}
	if added := after[len(before):]; len(added) > 0 {
		fmt.Fprintf(in.out, "the new server changed the schema: %s\n", strings.Join(added, ", "))
	} else {
		fmt.Fprintln(in.out, "the new program has no newer schema: only processes of two versions are tested")
	}
	return nil
}
