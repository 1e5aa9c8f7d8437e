package conformance

import (
	"testing"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
	"github.com/redeliver/terraform-provider-redeliver/redeliver/redelivertest"
)

const (
	// steps is by how much the clock of a broker in memory moves between two looks, and longest for how long at most.
	steps   = 10 * time.Millisecond
	longest = 10 * time.Minute
)

// InMemory opens brokers in memory that emulate a version.
func InMemory(version string) Open {
	return func(t *testing.T, spec topology.Spec) Broker {
		t.Helper()
		doc, err := spec.Manifest()
		return newMemory(t, doc, err, redelivertest.Version(version))
	}
}

// SQSInMemory opens brokers in memory that emulate Amazon SQS.
func SQSInMemory(t *testing.T, spec topology.SQSSpec) Broker {
	t.Helper()
	doc, err := spec.Manifest()
	return newMemory(t, doc, err)
}

func newMemory(t *testing.T, doc topology.Manifest, err error, options ...redelivertest.Option) Broker {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	m, err := redeliver.ParseManifest(doc.Encode())
	if err != nil {
		t.Fatal(err)
	}
	return memoryBroker{redelivertest.New(t, m, options...), t}
}

// memoryBroker implements Broker.
type memoryBroker struct {
	*redelivertest.Broker
	t *testing.T
}

func (b memoryBroker) Exact() bool            { return true }
func (b memoryBroker) Depth(queue string) int { return len(b.Messages(queue)) }

func (b memoryBroker) Consume(cfg redeliver.Config, handler redeliver.Handler) Consumer {
	b.t.Helper()
	return b.Broker.Consume(cfg, handler)
}

func (b memoryBroker) Until(condition func() (bool, string)) {
	b.t.Helper()
	b.Wait()
	for begun := b.Now(); ; b.Advance(steps) {
		ok, state := condition()
		if ok {
			return
		}
		if b.Now().Sub(begun) > longest {
			b.t.Fatalf("after %s: %s", longest, state)
		}
	}
}
