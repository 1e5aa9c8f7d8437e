package conformance_test

import (
	"testing"

	"github.com/redeliver/terraform-provider-redeliver/internal/consumer/conformance"
)

func TestInMemory(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"3.10", "4.0", "4.3"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			conformance.Run(t, version == "4.3", conformance.InMemory(version), nil)
		})
	}
}

func TestSQSInMemory(t *testing.T) {
	t.Parallel()
	conformance.RunSQS(t, conformance.SQSInMemory, nil)
}
