package natsbus_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/bus/bustest"
	"ordain.dev/ordain/internal/bus/natsbus/natstest"
)

// An event goes from one process's bus to another's, through a server on the loopback interface.
func BenchmarkEvent(b *testing.B) {
	here, there := joined(b, natstest.Start(b))
	far := there.Subscribe(func(e bus.Event) bool { return e.Topic == bus.Request })
	e := bus.Event{Environment: uuid.New(), Topic: bus.Request}
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		here.Publish(e)
		bustest.Next(b, far)
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

// The cost of an event for its publisher.
func BenchmarkPublish(b *testing.B) {
	here, _ := joined(b, natstest.Start(b))
	e := bus.Event{Environment: uuid.New(), Topic: bus.Resource, ID: "std::File[web-1,path=/etc/motd]"}
	for b.Loop() {
		here.Publish(e)
	}
}
