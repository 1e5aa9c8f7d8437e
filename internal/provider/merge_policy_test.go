package provider

import (
	"testing"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// A policy that changes between a plan and its apply.
func TestPolicyToMergeChangesAfterThePlan(t *testing.T) {
	b := setup(t)
	config := func(more string) string { return b.provider + viaPolicy(orders(more), "merge_policy = true") }
	others := func(length int) { b.policy("policies", "everything", ".*", map[string]any{"max-length": length}) }
	c := b.commandLine(config(""))
	merged := func(length float64) {
		t.Helper()
		for _, queue := range []string{"orders", "orders-dlq", "orders-hold-5s"} {
			if got := b.policies()[topology.OwnPolicyName(queue)].Definition["max-length"]; got != length {
				t.Errorf("the policy of %q sets max-length to %v, want %v", queue, got, length)
			}
		}
	}
	others(5000)
	c.plan("-out=saved")
	others(6000)
	c.must("apply", "saved")
	merged(6000)
	expect(t, c.plan(), "No changes")

	// An update copies what is there by then, too, whether or not it is about the policy.
	others(7000)
	expect(t, c.plan("-out=saved"), "max-length: want 7000, live 6000")
	others(8000)
	c.must("apply", "saved")
	merged(8000)
	expect(t, c.plan(), "No changes")
}
