package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/intent"
)

// The first half MiB and (about) the last of each stream of a stage are kept:
//
//	0 ─────────── keepHead ╌╌╌╌╌╌ dropped ╌╌╌╌╌╌ end-keepTail ────── end
//
// Pieces are stored as they come, cut at keepHead, so that nothing is ever rewritten; a piece that lies entirely in
// the middle is dropped.
const (
	keepHead  = 512 << 10
	keepTail  = 480 << 10 // with keepHead and a piece at most a MiB
	pieceSize = 32 << 10
)

const (
	streamOut = 1
	streamErr = 2
)

// StartStage records that a stage begins.
func (s *Store) StartStage(ctx context.Context, st intent.Stage) error {
	return s.write(ctx, "store.StartStage", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, statements.StageStart, st.ID, st.Compile, st.Name, cleanText(st.Command), st.Started)
		return err
	})
}

type stageGrowth struct {
	OutStart int64
	ErrStart int64
}

// AppendStage adds output to a running stage. At most 1 MiB of each stream is kept: the beginning and the end, with a
// line that says how much was left out.
func (s *Store) AppendStage(ctx context.Context, stage intent.CompileID, output, errOutput string) error {
	return s.write(ctx, "store.AppendStage", func(tx pgx.Tx) error {
		grown, err := one[stageGrowth](ctx, tx, statements.StageGrow, stage, int64(len(output)), int64(len(errOutput)))
		if err != nil {
			return err
		}
		if err := appendStream(ctx, tx, stage, streamOut, grown.OutStart, output); err != nil {
			return err
		}
		return appendStream(ctx, tx, stage, streamErr, grown.ErrStart, errOutput)
	})
}

func appendStream(ctx context.Context, tx pgx.Tx, stage uuid.UUID, stream int, start int64, text string) error {
	if text == "" {
		return nil
	}
	starts, pieces := cut(start, text)
	if _, err := tx.Exec(ctx, statements.StageOutputAdd, stage, stream, starts, pieces); err != nil {
		return err
	}
	end := start + int64(len(text))
	if end-keepTail <= keepHead {
		return nil
	}
	_, err := tx.Exec(ctx, statements.StageOutputDrop, stage, stream, int64(keepHead), end-keepTail)
	return err
}

// cut divides new output into pieces, without those that would be dropped at once.
func cut(start int64, text string) (starts []int64, pieces [][]byte) {
	end := start + int64(len(text))
	for at := start; at < end; {
		to := min(end, at+pieceSize)
		if at < keepHead {
			to = min(to, keepHead)
		}
		if at < keepHead || to > end-keepTail {
			starts = append(starts, at)
			pieces = append(pieces, []byte(text[at-start:to-start]))
		}
		at = to
	}
	return starts, pieces
}

// FinishStage ends a stage and sets the command that it ran; an empty one leaves the command that it was started
// with.
func (s *Store) FinishStage(
	ctx context.Context,
	stage intent.CompileID,
	command string,
	returnCode int,
	at time.Time,
) error {
	return s.write(ctx, "store.FinishStage", func(tx pgx.Tx) error {
		return affected(tx.Exec(ctx, statements.StageFinish, stage, command, returnCode, at))
	})
}

type stageRow struct {
	ID         uuid.UUID
	Compile    uuid.UUID
	Name       string
	Command    string
	Started    time.Time
	Completed  *time.Time
	ReturnCode *int
}

type outputRow struct {
	Stage  uuid.UUID
	Stream int
	Start  int64
	Bytes  []byte
}

func readStages(ctx context.Context, q querier, compile uuid.UUID) ([]intent.Stage, error) {
	rows, err := many[stageRow](ctx, q, statements.StageList, compile)
	if err != nil {
		return nil, err
	}
	pieces, err := many[outputRow](ctx, q, statements.StageOutputList, compile)
	if err != nil {
		return nil, err
	}
	type place struct {
		stage  uuid.UUID
		stream int
	}
	streams := make(map[place][]outputRow)
	for _, p := range pieces {
		at := place{p.Stage, p.Stream}
		streams[at] = append(streams[at], p)
	}
	stages := make([]intent.Stage, 0, len(rows))
	for _, r := range rows {
		stages = append(stages, intent.Stage{
			ID: r.ID, Compile: r.Compile, Name: r.Name, Command: r.Command, Started: r.Started.UTC(),
			Completed:  utc(r.Completed),
			Output:     join(streams[place{r.ID, streamOut}]),
			ErrOutput:  join(streams[place{r.ID, streamErr}]),
			ReturnCode: r.ReturnCode,
		})
	}
	return stages, nil
}

// join puts the pieces of a stream together, with a line where some are missing.
func join(pieces []outputRow) string {
	var b strings.Builder
	var end int64
	for _, p := range pieces {
		if p.Start > end {
			fmt.Fprintf(&b, "\n… %d bytes left out …\n", p.Start-end)
		}
		b.Write(p.Bytes)
		end = p.Start + int64(len(p.Bytes))
	}
	return strings.ToValidUTF8(b.String(), "\uFFFD")
}
