package store

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// Rows are sent by the thousand as columns, for unnest. The driver asks each
// element what it is and lets its buffer grow as it comes: half of all memory that a
// deployment took. These columns are written in one go, into room for all of them.

// moments are times of which some may not have been: those are zero, and NULL there.
type moments []time.Time

func momentOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// quickly has a connection write columns, and ids, in one go.
func quickly(_ context.Context, conn *pgx.Conn) error { return registerQuick(conn.TypeMap()) }

func registerQuick(types *pgtype.Map) error {
	for oid, plan := range map[uint32]func(value any) pgtype.EncodePlan{
		pgtype.UUIDOID:             planID,
		pgtype.TextArrayOID:        planTexts,
		pgtype.UUIDArrayOID:        array[[]uuid.UUID](pgtype.UUIDOID, func(uuid.UUID) int { return len(uuid.UUID{}) }, appendID),
		pgtype.Int4ArrayOID:        array[[]int](pgtype.Int4OID, func(int) int { return 4 }, appendInt),
		pgtype.BoolArrayOID:        array[[]bool](pgtype.BoolOID, func(bool) int { return 1 }, appendBool),
		pgtype.TimestamptzArrayOID: array[moments](pgtype.TimestamptzOID, sizeOfMoment, appendMoment),
	} {
		t, ok := types.TypeForOID(oid)
		if !ok {
			return fmt.Errorf("the driver does not know the type with the number %d", oid)
		}
		types.RegisterType(&pgtype.Type{Name: t.Name, OID: oid, Codec: quickCodec{t.Codec, plan}})
	}
	return nil
}

// quickCodec is a codec of the driver with a plan of its own for some values in the binary format.
type quickCodec struct {
	pgtype.Codec
	plan func(value any) pgtype.EncodePlan // nil: none for this value
}

// PlanEncode implements pgtype.Codec.
func (c quickCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if format == pgtype.BinaryFormatCode {
		if plan := c.plan(value); plan != nil {
			return plan
		}
	}
	return c.Codec.PlanEncode(m, oid, format, value)
}

// encodePlan is a function that writes a value behind what is in a buffer.
type encodePlan func(value any, buf []byte) ([]byte, error)

// Encode implements pgtype.EncodePlan.
func (p encodePlan) Encode(value any, buf []byte) ([]byte, error) { return p(value, buf) }

var (
	planStrings = array[[]string](pgtype.TextOID, func(s string) int { return len(s) }, appendText)
	planBytes   = array[[][]byte](pgtype.TextOID, func(b []byte) int { return len(b) }, appendText)
)

// planTexts writes texts, which may be at hand as bytes.
func planTexts(value any) pgtype.EncodePlan {
	if plan := planStrings(value); plan != nil {
		return plan
	}
	return planBytes(value)
}

func planID(value any) pgtype.EncodePlan {
	if _, is := value.(uuid.UUID); !is {
		return nil
	}
	return encodePlan(func(value any, buf []byte) ([]byte, error) {
		return appendID(buf, value.(uuid.UUID))
	})
}

// null is the length of an element that is NULL, in an array's binary format.
const null = -1

// array plans arrays of one dimension: the dimension, then each element
// behind its length. size gives null for an element that is NULL.
func array[S ~[]E, E any](
	element uint32,
	size func(E) int,
	put func([]byte, E) ([]byte, error),
) func(value any) pgtype.EncodePlan {
	const head, length = 20, 4
	plan := encodePlan(func(value any, buf []byte) ([]byte, error) {
		list := value.(S)
		if list == nil {
			return nil, nil
		}
		need, nulls := head+length*len(list), uint32(0)
		for _, e := range list {
			if n := size(e); n == null {
				nulls = 1
			} else {
				need += n
			}
		}
		buf = room(buf, need)
		buf = binary.BigEndian.AppendUint32(buf, 1) // dimension
		buf = binary.BigEndian.AppendUint32(buf, nulls)
		buf = binary.BigEndian.AppendUint32(buf, element)
		buf = binary.BigEndian.AppendUint32(buf, uint32(len(list)))
		buf = binary.BigEndian.AppendUint32(buf, 1) // where counting begins
		var err error
		for _, e := range list {
			n := size(e)
			buf = binary.BigEndian.AppendUint32(buf, uint32(int32(n)))
			if n == null {
				continue
			}
			if buf, err = put(buf, e); err != nil {
				return nil, err
			}
		}
		return buf, nil
	})
	return func(value any) pgtype.EncodePlan {
		if _, is := value.(S); !is {
			return nil
		}
		return plan
	}
}

// room makes place for n more, and for as much again: other columns follow.
func room(buf []byte, n int) []byte {
	if cap(buf)-len(buf) >= n {
		return buf
	}
	return append(make([]byte, 0, max(2*(len(buf)+n), 2*cap(buf))), buf...)
}

func appendText[T string | []byte](buf []byte, s T) ([]byte, error) { return append(buf, s...), nil }

func appendID(buf []byte, id uuid.UUID) ([]byte, error) { return append(buf, id[:]...), nil }

func appendInt(buf []byte, n int) ([]byte, error) {
	if n < math.MinInt32 || n > math.MaxInt32 {
		return nil, fmt.Errorf("%d is no integer of four bytes", n)
	}
	return binary.BigEndian.AppendUint32(buf, uint32(int32(n))), nil
}

func appendBool(buf []byte, b bool) ([]byte, error) {
	if b {
		return append(buf, 1), nil
	}
	return append(buf, 0), nil
}

func sizeOfMoment(t time.Time) int {
	if t.IsZero() {
		return null
	}
	return 8
}

// begin2000 is what the database counts microseconds from.
var begin2000 = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC).UnixMicro()

func appendMoment(buf []byte, t time.Time) ([]byte, error) {
	return binary.BigEndian.AppendUint64(buf, uint64(t.UnixMicro()-begin2000)), nil
}
