package store

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store/locks"
	"ordain.dev/ordain/server/store/partial"
)

// incoming is a resource of a new version on its way into the tables.
type incoming struct {
	id         string
	digest     uuid.UUID // of all that resource_content holds
	requires   []string
	undefined  []string
	attributes string
	from       *intent.Resource
	resource   int64 // keys; 0 until known
	content    int64
}

// prepare checks the resources of a version and sorts them by id.
func prepare(resources []intent.Resource) ([]incoming, error) {
	const op = "store.StoreVersion"
	all := make([]incoming, len(resources))
	var scratch []byte
	for i := range resources {
		r := &resources[i]
		in := incoming{
			id:         r.ID.String(),
			from:       r,
			requires:   idTexts(r.Requires),
			undefined:  r.Undefined,
			attributes: string(r.Attributes),
		}
		if _, err := intent.ParseResourceID(in.id); err != nil {
			return nil, fault.Wrap(op, fault.Invalid, err)
		}
		if in.attributes == "" {
			in.attributes = "{}"
		} else if len(r.Attributes) > intent.MaxAttributes {
			return nil, fault.New(op, fault.Invalid,
				fmt.Sprintf("the attributes of %s are %d MiB large, more than %d MiB", in.id, len(r.Attributes)>>20,
					intent.MaxAttributes>>20)).
				Hint("keep large content in a file that the resource refers to by its hash or address")
		} else if !json.Valid(r.Attributes) {
			return nil, fault.New(op, fault.Invalid, "the attributes of "+in.id+" are not JSON")
		}
		if in.undefined == nil {
			in.undefined = []string{}
		}
		scratch = in.describe(scratch[:0])
		sum := sha256.Sum256(scratch)
		copy(in.digest[:], sum[:])
		all[i] = in
	}
	slices.SortFunc(all, func(a, b incoming) int { return strings.Compare(a.id, b.id) })
	for i := 1; i < len(all); i++ {
		if all[i].id == all[i-1].id {
			return nil, fault.New(op, fault.Invalid, "the version has the resource "+all[i].id+" twice")
		}
	}
	return all, nil
}

// describe appends all that resource_content holds, each text with its length before it.
func (in *incoming) describe(b []byte) []byte {
	one := func(s string) {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	many := func(texts []string) {
		b = binary.AppendUvarint(b, uint64(len(texts)))
		for _, s := range texts {
			one(s)
		}
	}
	one(in.from.AttributeHash)
	one(in.attributes)
	one(in.from.ResourceSet)
	many(in.requires)
	many(in.undefined)
	for _, flag := range []bool{in.from.SendEvent, in.from.ReceiveEvents, in.from.Purged} {
		if flag {
			b = append(b, 1)
		} else {
			b = append(b, 0)
		}
	}
	return b
}

// StoreVersion stores a candidate and returns its number, counting up from 1 in each environment. Storing for the
// same compile again returns the number of the first time.
func (s *Store) StoreVersion(ctx context.Context, v intent.NewVersion, at time.Time) (number int, err error) {
	const op = "store.StoreVersion"
	all, err := prepare(v.Resources)
	if err != nil {
		return 0, err
	}
	export := v
	err = s.write(ctx, op, func(tx pgx.Tx) error {
		v := export // an earlier attempt may have merged into it
		last, err := lockEnvironment(ctx, tx, v.Environment)
		if err != nil {
			return err
		}
		var compile *uuid.UUID
		if id := v.Provenance.Compile; id != uuid.Nil {
			compile = &id
			err := tx.QueryRow(ctx, statements.VersionOfCompile, v.Environment, id).Scan(&number)
			if !isNoRows(err) {
				return err
			}
		}
		if v.Number != 0 {
			if err := useReserved(ctx, tx, op, v, last); err != nil {
				return err
			}
		}
		clustersOf := 0
		if v.Provenance.Pushed != nil {
			if clustersOf, err = pushedAfter(ctx, tx, &v); err != nil {
				return err
			}
		}
		if v.Partial != nil {
			if v, err = mergePartial(ctx, tx, v); err != nil {
				return err
			}
			if all, err = prepare(v.Resources); err != nil {
				return err
			}
		}
		if err := refuseCircle(all); err != nil {
			return err
		}
		if err := growResources(ctx, tx, op, v.Environment, len(all)); err != nil {
			return err
		}
		contents, err := storeResources(ctx, tx, v.Environment, all, at)
		if err != nil {
			return err
		}
		code, err := storeCode(ctx, tx, codeJSON{Code: v.Code, Pip: v.Pip})
		if err != nil {
			return err
		}
		if v.Unknowns == nil {
			v.Unknowns = []intent.Unknown{}
		}
		if number = v.Number; number == 0 {
			number = last + 1
		}
		_, err = tx.Exec(ctx, statements.VersionCreate, v.Environment, number, at, len(all), compile,
			toJSON(v.Provenance), toJSON(v.Unknowns), undefined(all), code, contents, v.Origins, v.Preview)
		if err == nil && v.Clusters != nil {
			_, err = tx.Exec(ctx, statements.VersionClustersAdd, v.Environment, number, string(v.Clusters))
		}
		if err == nil && clustersOf > 0 {
			_, err = tx.Exec(ctx, statements.VersionClustersCopy, v.Environment, clustersOf, number)
		}
		if err == nil && v.Elsewhere != nil {
			err = storeElsewhere(ctx, tx, op, *v.Elsewhere, number, at)
		}
		return err
	})
	return number, err
}

func undefined(all []incoming) (n int) {
	for i := range all {
		if len(all[i].undefined) > 0 {
			n++
		}
	}
	return n
}

// mergePartial makes a whole version of a partial export. The caller holds the lock of the environment, so the newest
// version stays the newest.
func mergePartial(ctx context.Context, tx pgx.Tx, v intent.NewVersion) (intent.NewVersion, error) {
	base := partial.Base{}
	var unknowns, origin json.RawMessage
	err := tx.QueryRow(ctx, statements.VersionNewest, v.Environment).Scan(&base.Number, &unknowns, &origin)
	if isNoRows(err) {
		return v, fault.New("store.StoreVersion", fault.Invalid,
			"a partial export needs a version to build on, and there is none").
			Hint("compile the whole model first")
	}
	if err != nil {
		return v, err
	}
	if base.Unknowns, err = fromJSON[[]intent.Unknown](unknowns); err != nil {
		return v, err
	}
	provenance, err := fromJSON[intent.Provenance](origin)
	if err != nil {
		return v, err
	}
	base.UnmanagedAgents = provenance.UnmanagedAgents
	inherit(&v, provenance)
	if base.Resources, err = collect(ctx, tx, keptAtVersion(0), statements.VersionResources, v.Environment,
		base.Number); err != nil {
		return v, err
	}
	var code json.RawMessage
	if err := tx.QueryRow(ctx, statements.VersionCode, v.Environment, base.Number).Scan(&code); err != nil {
		return v, err
	}
	document, err := fromJSON[codeJSON](code)
	if err != nil {
		return v, err
	}
	base.Code = document.Code
	return partial.Merge(base, v)
}

func storeCode(ctx context.Context, tx pgx.Tx, document codeJSON) (uuid.UUID, error) {
	text := toJSON(document)
	sum := sha256.Sum256([]byte(text))
	var hash uuid.UUID
	copy(hash[:], sum[:])
	if _, err := tx.Exec(ctx, statements.CodeLockShared, locks.Code); err != nil {
		return hash, err
	}
	_, err := tx.Exec(ctx, statements.CodeStore, hash, text)
	return hash, err
}

type knownRow struct {
	Ord      int64
	Resource *int64
	Content  *int64
}

// storeResources adds the resources and contents that are new, and returns the keys of all contents in order.
func storeResources(
	ctx context.Context,
	tx pgx.Tx,
	env intent.EnvironmentID,
	all []incoming,
	at time.Time,
) ([]int64, error) {
	ids, digests := make([]string, len(all)), make([]uuid.UUID, len(all))
	for i := range all {
		ids[i], digests[i] = all[i].id, all[i].digest
		all[i].resource, all[i].content = 0, 0 // an earlier attempt may have set them
	}
	known, err := many[knownRow](ctx, tx, statements.ContentFind, env, ids, digests)
	if err != nil {
		return nil, err
	}
	for _, k := range known {
		in := &all[k.Ord-1]
		if k.Resource != nil {
			in.resource = *k.Resource
		}
		if k.Content != nil {
			in.content = *k.Content
		}
	}
	var fresh, changed []*incoming
	for i := range all {
		if all[i].resource == 0 {
			fresh = append(fresh, &all[i])
		}
		if all[i].content == 0 {
			changed = append(changed, &all[i])
		}
	}
	if err := addResources(ctx, tx, env, fresh, at); err != nil {
		return nil, err
	}
	if err := addContents(ctx, tx, changed); err != nil {
		return nil, err
	}
	contents := make([]int64, len(all))
	for i := range all {
		contents[i] = all[i].content
	}
	return contents, nil
}

// takeKeys takes n keys from a table's sequence, so that rows can be copied in with known keys.
func takeKeys(ctx context.Context, tx pgx.Tx, table string, n int) ([]int64, error) {
	rows, err := tx.Query(ctx, statements.KeysTake, table, n)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}

func addResources(ctx context.Context, tx pgx.Tx, env intent.EnvironmentID, fresh []*incoming, at time.Time) error {
	if len(fresh) == 0 {
		return nil
	}
	keys, err := takeKeys(ctx, tx, "resource", len(fresh))
	if err != nil {
		return err
	}
	_, err = tx.CopyFrom(
		ctx,
		pgx.Identifier{"resource"},
		[]string{"key", "environment", "id", "type", "agent", "value", "first_seen"},
		pgx.CopyFromSlice(len(fresh), func(i int) ([]any, error) {
			in := fresh[i]
			in.resource = keys[i]
			return []any{keys[i], env, in.id, in.from.ID.Type, in.from.ID.Agent, in.from.ID.Value, at}, nil
		}),
	)
	return err
}

func addContents(ctx context.Context, tx pgx.Tx, changed []*incoming) error {
	if len(changed) == 0 {
		return nil
	}
	keys, err := takeKeys(ctx, tx, "resource_content", len(changed))
	if err != nil {
		return err
	}
	_, err = tx.CopyFrom(
		ctx,
		pgx.Identifier{"resource_content"},
		[]string{
			"key",
			"resource",
			"digest",
			"attributes",
			"attribute_hash",
			"requires",
			"resource_set",
			"undefined",
			"send_event",
			"receive_events",
			"purged",
		},
		pgx.CopyFromSlice(len(changed), func(i int) ([]any, error) {
			in := changed[i]
			in.content = keys[i]
			return []any{
				keys[i],
				in.resource,
				in.digest,
				in.attributes,
				in.from.AttributeHash,
				in.requires,
				in.from.ResourceSet,
				in.undefined,
				in.from.SendEvent,
				in.from.ReceiveEvents,
				in.from.Purged,
			}, nil
		}),
	)
	return err
}
