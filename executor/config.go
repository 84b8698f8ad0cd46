package executor

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/isolation"
	"ordain.dev/ordain/internal/python/venv"
	"ordain.dev/ordain/layout"
)

// Config says how the executors of one environment work. Zero durations and
// numbers take the defaults below.
type Config struct {
	Layout      *layout.Layout
	Environment intent.EnvironmentID
	Maker       *venv.Maker // makes the virtual environments
	Files       Files
	Desk        Desk         // answers handlers' calls to the server; nil refuses all
	Logger      *slog.Logger // of the environment; the output of executors goes there too
	// Variables returns the environment variables of handlers beside PATH, HOME,
	// LANG, TZ and TMPDIR. It is called when a process starts. No other variable
	// of the server reaches handlers. nil means none.
	Variables func(ctx context.Context) ([]Variable, error)

	// Contents has what blueprints with Wheels or a Runtime refer to; nil if there are none of them.
	Contents Contents

	// MayGrow fails when the environment may take no more disk. It is asked before a virtual environment is made; nil
	// means that there is always room.
	MayGrow func(ctx context.Context) error
	// Cell confines the processes; nil confines nothing.
	Cell *isolation.Cell

	MemoryMax   uint64 // bytes of data of a process, without the stacks of its threads; 0: no limit
	FileMax     uint64 // bytes of the largest file that a process may write; 0: no limit
	ChildrenMax int    // processes that an executor may have started; 0: no limit
	KeepDaemons bool   // background processes that handlers started outlive the executor
	DiskMax     uint64 // bytes of all venvs and code folders; the least recently used go first; 0: no limit

	AgentCap       int           // executors that one agent may have at a time; default 3
	Cap            int           // processes that may run at a time; default 16
	Turn           time.Duration // how long a busy process keeps its place when others wait; default 10 seconds
	HandlerTimeout time.Duration // of one task; default 10 minutes
	StartTimeout   time.Duration // of making a venv and starting a process; default 15 minutes
	StartRetry     time.Duration // pause after a failed start; default 1 minute
	HangGrace      time.Duration // how long other tasks may go on beside a hung handler; default 30 seconds
	IdleRetention  time.Duration // an idle process is ended after this; default 10 minutes
	VenvRetention  time.Duration // an unused venv is deleted after this; default 1 hour
}

func (c Config) withDefaults() (Config, error) {
	switch {
	case c.Layout == nil:
		return c, errors.New("executor: Config.Layout is missing")
	case c.Maker == nil:
		return c, errors.New("executor: Config.Maker is missing")
	case c.Files == nil:
		return c, errors.New("executor: Config.Files is missing")
	case c.Environment == intent.EnvironmentID{}:
		return c, errors.New("executor: Config.Environment is missing")
	case c.Cap < 0, c.AgentCap < 0:
		return c, errors.New("executor: a cap of Config is negative")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if c.Cap == 0 {
		c.Cap = 16
	}
	if c.AgentCap == 0 {
		c.AgentCap = 3
	}
	for _, d := range []struct {
		value    *time.Duration
		standard time.Duration
	}{
		{&c.HandlerTimeout, 10 * time.Minute},
		{&c.StartTimeout, 15 * time.Minute},
		{&c.StartRetry, time.Minute},
		{&c.HangGrace, 30 * time.Second},
		{&c.Turn, 10 * time.Second},
		{&c.IdleRetention, 10 * time.Minute},
		{&c.VenvRetention, time.Hour},
	} {
		if *d.value < 0 {
			return c, errors.New("executor: a duration of Config is negative")
		}
		if *d.value == 0 {
			*d.value = d.standard
		}
	}
	return c, nil
}
