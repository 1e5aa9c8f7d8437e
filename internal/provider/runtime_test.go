package provider

import (
	"sync"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

func TestKeyedLocksKeepOneNameApart(t *testing.T) {
	t.Parallel()
	var locks keyedLocks
	var wg sync.WaitGroup
	counts := map[string]*int{"a": new(int), "b": new(int), "c": new(int)}
	// Every pair of keys, in both orders: callers that waited for each other would never end.
	for _, keys := range [][]string{{"a", "b"}, {"b", "a"}, {"b", "c"}, {"c", "b"}, {"a", "c"}, {"c", "a"}, {"a", "a"}} {
		for range 50 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				defer locks.lock(keys...)()
				*counts[keys[0]]++
				if keys[1] != keys[0] {
					*counts[keys[1]]++
				}
			}()
		}
	}
	wg.Wait()
	if *counts["a"] != 250 || *counts["b"] != 200 || *counts["c"] != 200 {
		t.Errorf("counted %d, %d, %d", *counts["a"], *counts["b"], *counts["c"])
	}
}

func TestKeyedLocksLetOtherNamesThrough(t *testing.T) {
	t.Parallel()
	var locks keyedLocks
	defer locks.lock("a", "b")()
	locks.lock("c", "d")()
	locks.lock()()
}

func TestCarriedBindingsAreGivenBackOnce(t *testing.T) {
	t.Parallel()
	rt := newRuntime(types.StringNull(), types.StringNull())
	key := objectKey("queue", "/", "orders")
	rt.noteCreated(key)
	rt.carry(key, []topology.Binding{{Source: "x"}})
	if rt.wasCreated(key) {
		t.Error("what was deleted still counts as made by this run")
	}
	if got := rt.takeCarried(objectKey("queue", "other", "orders")); len(got) != 0 {
		t.Errorf("another vhost's queue gets %v", got)
	}
	if got := rt.takeCarried(key); len(got) != 1 {
		t.Errorf("given back: %v", got)
	}
	if got := rt.takeCarried(key); len(got) != 0 {
		t.Errorf("given back twice: %v", got)
	}
}

func TestIdentityDefaults(t *testing.T) {
	t.Parallel()
	text, unknown, null := types.StringValue, types.StringUnknown(), types.StringNull()
	model := func(vhost, convention, group types.String) *partModel {
		return &partModel{VHost: vhost, Convention: convention, ConsumerGroup: group}
	}
	for name, test := range map[string]struct {
		vhost, convention, group types.String // the provider's
		config, state            *partModel
		want                     *partModel
	}{
		"configured": {
			text("p"), text("shove"), text("g"), model(text("a"), text("acemq"), null), nil, model(text("a"), text("acemq"), null),
		},
		"the provider's defaults": {
			text("p"), text("shove"), text("g"), model(null, null, null), nil, model(text("p"), text("shove"), text("g")),
		},
		"a group only where the convention has them": {
			text("p"), text("redeliver"), text("g"), model(null, null, null), nil, model(text("p"), text("redeliver"), null),
		},
		"unknown without a state": {
			unknown, unknown, unknown, model(null, null, null), nil, model(unknown, unknown, unknown),
		},
		"the state's while the provider's are unknown": {
			unknown, unknown, unknown, model(null, null, null), model(text("s"), text("shove"), null), model(text("s"), text("shove"), null),
		},
		"another default than the state's": {
			text("p"), text("redeliver"), null, model(null, null, null), model(text("s"), text("shove"), text("g")), model(text("p"), text("redeliver"), null),
		},
		"unknown in the configuration": {
			text("p"), text("shove"), null, model(unknown, null, null), model(text("s"), text("shove"), null), model(unknown, text("shove"), null),
		},
	} {
		rt := newRuntime(test.convention, test.group)
		rt.vhost = test.vhost
		vhost, convention, group := rt.identity(test.config, test.state)
		if !vhost.Equal(test.want.VHost) || !convention.Equal(test.want.Convention) || !group.Equal(test.want.ConsumerGroup) {
			t.Errorf("%s: %s, %s, %s", name, vhost, convention, group)
		}
	}
}
