package executor

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"ordain.dev/ordain/internal/intent"
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
	Desk        Desk         // answers what handlers ask beside files; nil: nothing
	Logger      *slog.Logger // of the environment: what executors print goes there
	// Variables are what handlers see beside PATH, HOME, LANG, TZ and TMPDIR,
	// asked for when a process starts. Nothing else of the server's environment
	// reaches them. nil: none.
	Variables func(ctx context.Context) ([]Variable, error)

	MemoryMax   uint64 // bytes of data that a process may have, beside the stacks of its threads; 0: no limit
	FileMax     uint64 // bytes of the largest file that it may write; 0: no limit
	ChildrenMax int    // processes that it may have started; 0: no limit
	KeepDaemons bool   // what a process left running in the background outlives it
	DiskMax     uint64 // bytes of all venvs and code folders; those unused longest go first; 0: no limit

	AgentCap       int           // executors that one agent has at a time; default 3
	Cap            int           // processes at a time, of all agents; default 16
	Turn           time.Duration // a busy process keeps its place this long when others wait; default 10 seconds
	HandlerTimeout time.Duration // of one task; default 10 minutes
	StartTimeout   time.Duration // of making a venv and starting; default 15 minutes
	StartRetry     time.Duration // how long a failed start is not tried again; default 1 minute
	HangGrace      time.Duration // how long a process with a hung handler may finish other tasks; default 30 seconds
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
