package provider

import (
	"maps"
	"slices"
	"testing"

	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

func quorum(args topology.Arguments) topology.Queue {
	args = maps.Clone(args)
	args["x-queue-type"] = "quorum"
	return topology.Queue{Name: "q", Type: topology.Quorum, Arguments: args}
}

func classic(args topology.Arguments) topology.Queue {
	args = maps.Clone(args)
	args["x-queue-type"] = "classic"
	return topology.Queue{Name: "q", Type: topology.Classic, Arguments: args}
}

func TestMirrorShowsWhatNoQueueOfTheContractIs(t *testing.T) {
	t.Parallel()
	shown := mirrorArguments(rabbitmqadmin.LiveQueue{Name: "q", Type: topology.Classic, AutoDelete: true, Exclusive: true, Arguments: topology.Arguments{"x-message-ttl": int64(5)}})
	want := map[string]string{"x-queue-type": `"classic"`, "x-message-ttl": "5", "durable": "false", "auto_delete": "true", "exclusive": "true"}
	if !maps.Equal(shown, want) {
		t.Errorf("shown %v, want %v", shown, want)
	}
	if got := mirrored("q", shown); got.Durable || !got.AutoDelete || !got.Exclusive || got.Type != topology.Classic || got.Arguments["x-message-ttl"] != int64(5) {
		t.Errorf("read back as %+v", got)
	}
}

func TestPlannedArguments(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		want   topology.Queue
		shown  map[string]string
		ignore []string
		// planned is what the plan shows, repaired what it replaces the queue for.
		planned  map[string]string
		repaired []string
	}{
		"nothing to compare with": {
			want:    quorum(topology.Arguments{"x-delivery-limit": int64(50)}),
			planned: map[string]string{"x-queue-type": `"quorum"`, "x-delivery-limit": "50"},
		},
		"equal": {
			want:    quorum(topology.Arguments{"x-delivery-limit": int64(50)}),
			shown:   map[string]string{"x-queue-type": `"quorum"`, "x-delivery-limit": "50"},
			planned: map[string]string{"x-queue-type": `"quorum"`, "x-delivery-limit": "50"},
		},
		"another value": {
			want:     quorum(topology.Arguments{"x-delivery-limit": int64(50)}),
			shown:    map[string]string{"x-queue-type": `"quorum"`, "x-delivery-limit": "20"},
			planned:  map[string]string{"x-queue-type": `"quorum"`, "x-delivery-limit": "50"},
			repaired: []string{"x-delivery-limit"},
		},
		"a string that looks like the number": {
			want:     quorum(topology.Arguments{"x-max-length": int64(5000)}),
			shown:    map[string]string{"x-queue-type": `"quorum"`, "x-max-length": `"5000"`},
			planned:  map[string]string{"x-queue-type": `"quorum"`, "x-max-length": "5000"},
			repaired: []string{"x-max-length"},
		},
		"missing and unknown ones": {
			want:     quorum(topology.Arguments{"x-delivery-limit": int64(50)}),
			shown:    map[string]string{"x-queue-type": `"quorum"`, "x-made-up": "true"},
			planned:  map[string]string{"x-queue-type": `"quorum"`, "x-delivery-limit": "50"},
			repaired: []string{"x-delivery-limit", "x-made-up"},
		},
		"accepted ones": {
			want:    quorum(topology.Arguments{"x-delivery-limit": int64(50)}),
			shown:   map[string]string{"x-queue-type": `"quorum"`, "x-made-up": "true"},
			ignore:  []string{"x-delivery-limit", "x-made-up"},
			planned: map[string]string{"x-queue-type": `"quorum"`, "x-made-up": "true"},
		},
		"equal in effect: where a classic queue keeps its messages": {
			want:    classic(topology.Arguments{}),
			shown:   map[string]string{"x-queue-type": `"classic"`, "x-queue-mode": `"lazy"`},
			planned: map[string]string{"x-queue-type": `"classic"`, "x-queue-mode": `"lazy"`},
		},
		"equal in effect: what a classic queue ignores": {
			want:    classic(topology.Arguments{}),
			shown:   map[string]string{"x-queue-type": `"classic"`, "x-delivery-limit": "5", "x-dead-letter-strategy": `"at-least-once"`},
			planned: map[string]string{"x-queue-type": `"classic"`, "x-delivery-limit": "5", "x-dead-letter-strategy": `"at-least-once"`},
		},
		"another type": {
			want:     quorum(topology.Arguments{}),
			shown:    map[string]string{"x-queue-type": `"classic"`},
			planned:  map[string]string{"x-queue-type": `"quorum"`},
			repaired: []string{"x-queue-type"},
		},
		"a transient queue": {
			want:     quorum(topology.Arguments{}),
			shown:    map[string]string{"x-queue-type": `"quorum"`, "durable": "false", "auto_delete": "true"},
			planned:  map[string]string{"x-queue-type": `"quorum"`},
			repaired: []string{"auto_delete", "durable"},
		},
		"state that another hand wrote": {
			want:     quorum(topology.Arguments{}),
			shown:    map[string]string{"x-queue-type": "quorum"},
			planned:  map[string]string{"x-queue-type": `"quorum"`},
			repaired: []string{"x-queue-type"},
		},
	} {
		differences := queueDifferences(test.want, test.shown, test.ignore)
		var repaired []string
		for _, d := range differences {
			repaired = append(repaired, d.Key)
			if d.Explanation == "" {
				t.Errorf("%s: %s is not explained", name, d.Key)
			}
		}
		if !slices.Equal(repaired, test.repaired) {
			t.Errorf("%s: repairs %q, want %q", name, repaired, test.repaired)
		}
		if planned := plannedArguments(test.want.Arguments, test.shown, differences); !maps.Equal(planned, test.planned) {
			t.Errorf("%s: plans %v, want %v", name, planned, test.planned)
		}
	}
}

func TestMirrorExchangeShowsWhatDiffers(t *testing.T) {
	t.Parallel()
	for want, live := range map[string]rabbitmqadmin.LiveExchange{
		"x":             {Name: "x", Type: "direct", Durable: true},
		"x (topic)":     {Name: "x", Type: "topic", Durable: true},
		"x (transient)": {Name: "x", Type: "direct"},
		"x (fanout, transient, auto-delete, internal)": {Name: "x", Type: "fanout", AutoDelete: true, Internal: true},
	} {
		if got := mirrorExchange(live, "direct"); got != want {
			t.Errorf("%+v shows as %q, want %q", live, got, want)
		}
	}
}

func TestBeyondIsWhatAllQueuesHaveMore(t *testing.T) {
	t.Parallel()
	a, b := classic(topology.Arguments{"x-message-ttl": int64(1)}), classic(topology.Arguments{"x-message-ttl": int64(2)})
	a.Name, b.Name = "a", "b"
	shown := map[string]map[string]string{
		"a": {"x-queue-type": `"classic"`, "x-message-ttl": "1", "x-max-length": "5"},
		"b": {"x-queue-type": `"classic"`, "x-message-ttl": "7", "x-max-length": "5", "x-queue-mode": `"lazy"`},
	}
	if got := topology.CanonicalJSON(beyond([]topology.Queue{a, b}, shown)); got != `{"x-max-length":5}` {
		t.Errorf("beyond the contract: %s", got)
	}
	shown["b"]["x-max-length"] = "6"
	if got := beyond([]topology.Queue{a, b}, shown); len(got) > 0 {
		t.Errorf("no two queues agree, and yet: %v", got)
	}
}
