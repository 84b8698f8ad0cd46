package store

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// registerUUID makes a connection send a uuid.UUID as its 16 bytes. On its own, pgx asks for the text of each one and
// parses it.
func registerUUID(_ context.Context, conn *pgx.Conn) error {
	types := conn.TypeMap()
	types.TryWrapEncodePlanFuncs = append([]pgtype.TryWrapEncodePlanFunc{wrapUUID}, types.TryWrapEncodePlanFuncs...)
	return nil
}

// wrapUUID implements pgtype.TryWrapEncodePlanFunc.
func wrapUUID(value any) (pgtype.WrappedEncodePlanNextSetter, any, bool) {
	if id, is := value.(uuid.UUID); is {
		return &uuidPlan{}, pgUUID(id), true
	}
	return nil, nil, false
}

// pgUUID is a uuid.UUID with the method that pgtype asks for.
type pgUUID uuid.UUID

// UUIDValue implements pgtype.UUIDValuer.
func (u pgUUID) UUIDValue() (pgtype.UUID, error) { return pgtype.UUID{Bytes: u, Valid: true}, nil }

type uuidPlan struct{ next pgtype.EncodePlan }

// SetNext implements pgtype.WrappedEncodePlanNextSetter.
func (p *uuidPlan) SetNext(next pgtype.EncodePlan) { p.next = next }

// Encode implements pgtype.EncodePlan.
func (p *uuidPlan) Encode(value any, buf []byte) ([]byte, error) {
	return p.next.Encode(pgUUID(value.(uuid.UUID)), buf)
}
