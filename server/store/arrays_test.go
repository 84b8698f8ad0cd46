package store

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
	"pgregory.net/rapid"
)

// What is written in one go is what the driver writes element by element, behind
// whatever was written before.
func TestColumnsAreWhatTheDriverWrites(t *testing.T) {
	quick := pgtype.NewMap()
	if err := registerQuick(quick); err != nil {
		t.Fatal(err)
	}
	driver := pgtype.NewMap()
	rapid.Check(t, func(t *rapid.T) {
		before := rapid.SliceOf(rapid.Byte()).Draw(t, "before")
		same := func(oid uint32, ours, theirs any) {
			t.Helper()
			if _, own := quick.PlanEncode(oid, pgtype.BinaryFormatCode, ours).(encodePlan); !own {
				t.Fatalf("%T goes the driver's way", ours)
			}
			want, err := driver.Encode(oid, pgtype.BinaryFormatCode, theirs, bytes.Clone(before))
			if err != nil {
				t.Fatal(err)
			}
			got, err := quick.Encode(oid, pgtype.BinaryFormatCode, ours, bytes.Clone(before))
			if err != nil || !bytes.Equal(got, want) || (got == nil) != (want == nil) {
				t.Fatalf("%T %v: %x, %v; the driver writes %x", ours, ours, got, err, want)
			}
		}
		texts := rapid.SliceOf(rapid.String()).Draw(t, "texts")
		same(pgtype.TextArrayOID, texts, texts)
		asBytes := make([][]byte, len(texts))
		for i, text := range texts {
			asBytes[i] = []byte(text)
		}
		same(pgtype.TextArrayOID, asBytes, texts)
		flags := rapid.SliceOf(rapid.Bool()).Draw(t, "flags")
		same(pgtype.BoolArrayOID, flags, flags)
		numbers := rapid.SliceOf(rapid.IntRange(math.MinInt32, math.MaxInt32)).Draw(t, "numbers")
		same(pgtype.Int4ArrayOID, numbers, numbers)

		var ids []uuid.UUID
		var theirIDs []pgtype.UUID
		for _, b := range rapid.SliceOf(rapid.SliceOfN(rapid.Byte(), 16, 16)).Draw(t, "ids") {
			ids, theirIDs = append(ids, uuid.UUID(b)), append(theirIDs, pgtype.UUID{Bytes: [16]byte(b), Valid: true})
		}
		same(pgtype.UUIDArrayOID, ids, pgtype.FlatArray[pgtype.UUID](theirIDs))
		if len(ids) > 0 {
			same(pgtype.UUIDOID, ids[0], theirIDs[0])
		}

		var times moments
		var theirTimes []pgtype.Timestamptz
		for _, us := range rapid.SliceOf(rapid.Int64Range(-9e15, 9e15)).Draw(t, "times") {
			at := time.UnixMicro(us)
			if us%5 == 0 {
				at = time.Time{}
			}
			times, theirTimes = append(times, at), append(theirTimes, pgtype.Timestamptz{Time: at, Valid: !at.IsZero()})
		}
		same(pgtype.TimestamptzArrayOID, times, pgtype.FlatArray[pgtype.Timestamptz](theirTimes))
	})
	if _, err := quick.Encode(pgtype.Int4ArrayOID, pgtype.BinaryFormatCode, []int{math.MaxInt32 + 1}, nil); err == nil {
		t.Fatal("a number of more than four bytes was written")
	}
}
