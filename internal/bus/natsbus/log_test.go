package natsbus_test

import (
	"log/slog"
	"testing"
)

// logger writes to the log of the test.
func logger(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}
