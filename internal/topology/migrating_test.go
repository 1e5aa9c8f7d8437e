package topology

import (
	"strings"
	"testing"
)

func TestMigrating(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		queue Queue
		want  string // the arguments
	}{
		"classic": {
			Queue{Type: Classic, Arguments: Arguments{ArgQueueType: "classic", ArgMessageTTL: int64(5), ArgMaxLength: int64(5), ArgMaxPriority: int64(3)}},
			`{"x-queue-type":"classic"}`,
		},
		"quorum": {
			Queue{Type: Quorum, Arguments: Arguments{ArgQueueType: "quorum", ArgDeliveryLimit: int64(3), ArgSingleActiveConsumer: true, ArgQuorumGroupSize: int64(5)}},
			`{"x-delivery-limit":1000000,"x-queue-type":"quorum","x-quorum-initial-group-size":5}`,
		},
		"what expires is dead-lettered": {
			Queue{Type: Quorum, Arguments: Arguments{ArgDeadLetterExchange: "x", ArgDeadLetterKey: "k", ArgDeadLetterStrategy: "at-least-once", ArgOverflow: "reject-publish", ArgMaxLength: int64(9)}},
			`{"x-dead-letter-exchange":"x","x-dead-letter-routing-key":"k","x-dead-letter-strategy":"at-least-once","x-delivery-limit":1000000,"x-overflow":"reject-publish","x-queue-type":"quorum"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.queue.Name = "orders"
			m := tc.queue.Migrating()
			if got := CanonicalJSON(m.Queue.Arguments); got != tc.want {
				t.Errorf("arguments %s, want %s", got, tc.want)
			}
			if m.Queue.Name != (Identity{Topic: "orders"}).MigratingQueueName() || m.Switch == m.Branch || m.Validate("orders") != nil {
				t.Errorf("names %q %q %q", m.Queue.Name, m.Switch, m.Branch)
			}
			for _, name := range []string{m.Queue.Name, m.Switch, m.Branch} {
				for _, c := range Conventions() {
					if err := (Identity{Topic: name, Convention: c}).Validate(); err == nil {
						t.Errorf("%q may be a topic under %s", name, c)
					}
				}
			}
			if got := Holder(m.LockArguments("me")); got != "me" || m.Lock == m.Queue.Name {
				t.Errorf("the lock %q is held by %q", m.Lock, got)
			}
			before := Arguments{ArgMessageTTL: int64(9007199254740993), "x-other": map[string]any{"a": "ü"}}
			if got, ok := Replacing(m.SwitchArguments(before)); !ok || CanonicalJSON(got) != CanonicalJSON(before) {
				t.Errorf("the switch says that the queue was %v (%v), not %v", got, ok, before)
			}
		})
	}
	if _, ok := Replacing(Arguments{ArgAlternateExchange: "x"}); ok {
		t.Error("any exchange is a switch")
	}
	refused(t, Queue{Name: strings.Repeat("q", 240)}.Migrating().Validate("q"), "260 bytes", "allows 255")
}
