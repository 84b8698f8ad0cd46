package executor

import (
	"errors"
	"io"
	"log/slog"
	"time"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/pyenv"
	"ordain.dev/ordain/internal/pyworker"
	"ordain.dev/ordain/layout"
)

// Config says how the executors of one environment work. Zero durations and
// numbers take the defaults below.
type Config struct {
	Layout      *layout.Layout
	Environment intent.EnvironmentID
	Maker       *pyenv.Maker // makes the virtual environments
	Files       Files
	Logger      *slog.Logger // of the environment: what executors print goes there
	// Environ are variables that handlers see beside PATH, HOME, LANG, TZ and
	// TMPDIR. Nothing else of the server's environment reaches them.
	Environ   []string
	MemoryMax uint64 // address space of a process in bytes; 0: no limit

	Cap            int           // processes at a time; default 10
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
	case c.Cap < 0:
		return c, errors.New("executor: Config.Cap is negative")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if c.Cap == 0 {
		c.Cap = 10
	}
	for _, d := range []struct {
		value    *time.Duration
		standard time.Duration
	}{
		{&c.HandlerTimeout, 10 * time.Minute},
		{&c.StartTimeout, 15 * time.Minute},
		{&c.StartRetry, time.Minute},
		{&c.HangGrace, 30 * time.Second},
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

func (c Config) environ() []string { return append(pyworker.MinimalEnv(), c.Environ...) }
