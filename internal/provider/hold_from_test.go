package provider

import "testing"

// TestPlanSaysThatNoRetryWaitsInAHoldQueue: hold_from is longer than the longest of 5s, 30s and 2m.
func TestPlanSaysThatNoRetryWaitsInAHoldQueue(t *testing.T) {
	b := setup(t)
	const summary = "No retry waits in a hold queue"
	c := b.commandLine(b.provider + orders(`retry = { strategy = "hybrid", hold_from = "3m" }`))
	expect(t, c.plan(), "Warning: "+summary, `hold_from 3m, and the longest of its delays is 2m`, `every retry waits in the consumer`, `acknowledge_warnings = ["unused_hold_queues"]`)
	for _, fine := range []string{
		`retry = { strategy = "hybrid", hold_from = "2m" }`, `retry = { strategy = "hybrid" }`, `retry = { strategy = "republish" }`,
		"retry = { strategy = \"hybrid\", hold_from = \"3m\" }\nacknowledge_warnings = [\"unused_hold_queues\"]",
	} {
		c.configure(b.provider + orders(fine))
		expectNot(t, c.plan(), summary)
	}
}
