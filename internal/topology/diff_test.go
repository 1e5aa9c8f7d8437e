package topology

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestDiffArguments(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		want, live Arguments
		diffs      []string // key want live meaning
		explains   string   // a part of the first explanation
	}{
		"nothing":                {nil, nil, nil, ""},
		"nothing but empty":      {Arguments{}, nil, nil, ""},
		"equal":                  {Arguments{ArgMessageTTL: int64(5000)}, Arguments{ArgMessageTTL: int64(5000)}, nil, ""},
		"width":                  {Arguments{ArgMessageTTL: int64(5000)}, Arguments{ArgMessageTTL: 5000.0}, nil, ""},
		"width of JSON":          {Arguments{ArgMessageTTL: int64(5000)}, Arguments{ArgMessageTTL: json.Number("5000")}, nil, ""},
		"text is no number":      {Arguments{ArgMessageTTL: int64(5000)}, Arguments{ArgMessageTTL: "5000"}, []string{`x-message-ttl 5000 "5000" changes_behaviour`}, `after "5000" instead of 5s`},
		"ttl":                    {Arguments{ArgMessageTTL: int64(5000)}, Arguments{ArgMessageTTL: int64(90_000)}, []string{"x-message-ttl 5000 90000 changes_behaviour"}, "leave this queue after 1m30s instead of 5s"},
		"ttl missing":            {Arguments{ArgMessageTTL: int64(5000)}, nil, []string{"x-message-ttl 5000 - changes_behaviour"}, "never goes home"},
		"ttl added":              {nil, Arguments{ArgMessageTTL: int64(5000)}, []string{"x-message-ttl - 5000 changes_behaviour"}, "wait here for 5s leave the queue"},
		"classic and none":       {Arguments{ArgQueueType: "classic"}, nil, []string{`x-queue-type "classic" - equal_in_effect`}, "right type either way"},
		"none and classic":       {nil, Arguments{ArgQueueType: "classic"}, []string{`x-queue-type - "classic" equal_in_effect`}, "right type either way"},
		"quorum and none":        {Arguments{ArgQueueType: "quorum"}, nil, []string{`x-queue-type "quorum" - changes_behaviour`}, "this is a classic queue and not a quorum one"},
		"none and quorum":        {nil, Arguments{ArgQueueType: "quorum"}, []string{`x-queue-type - "quorum" changes_behaviour`}, "this is a quorum queue and not a classic one"},
		"quorum and classic":     {Arguments{ArgQueueType: "quorum"}, Arguments{ArgQueueType: "classic"}, []string{`x-queue-type "quorum" "classic" changes_behaviour`}, "this is a classic queue and not a quorum one"},
		"exchange":               {Arguments{ArgDeadLetterExchange: "orders-retry"}, Arguments{ArgDeadLetterExchange: ""}, []string{`x-dead-letter-exchange "orders-retry" "" changes_behaviour`}, `go to the default exchange instead of exchange "orders-retry"`},
		"no exchange":            {Arguments{ArgDeadLetterExchange: ""}, nil, []string{`x-dead-letter-exchange "" - changes_behaviour`}, "are discarded instead of going to the default exchange"},
		"unknown":                {nil, Arguments{"x-new": true}, []string{"x-new - true unknown_argument"}, "not known here"},
		"unknown but wanted":     {Arguments{"x-new": true}, Arguments{"x-new": "true"}, []string{`x-new true "true" changes_behaviour`}, "asks for another value"},
		"unknown and missing":    {Arguments{"x-new": true}, nil, []string{"x-new true - changes_behaviour"}, "the queue lacks it"},
		"null is not absent":     {nil, Arguments{"x-new": nil}, []string{"x-new - null unknown_argument"}, ""},
		"placement, not wanted":  {nil, Arguments{"x-queue-leader-locator": "balanced"}, []string{`x-queue-leader-locator - "balanced" equal_in_effect`}, "messages fare the same"},
		"placement, wanted":      {Arguments{"x-queue-leader-locator": "balanced"}, nil, []string{`x-queue-leader-locator "balanced" - changes_behaviour`}, ""},
		"nested":                 {Arguments{"x": map[string]any{"a": []any{int64(1)}, "b": true}}, Arguments{"x": map[string]any{"b": true, "a": []any{1.0}}}, nil, ""},
		"nested and different":   {Arguments{"x": []any{int64(1), int64(2)}}, Arguments{"x": []any{int64(2), int64(1)}}, []string{"x [1,2] [2,1] changes_behaviour"}, ""},
		"negative limit":         {Arguments{ArgDeliveryLimit: int64(50)}, Arguments{ArgDeliveryLimit: int64(-1)}, []string{"x-delivery-limit 50 -1 changes_behaviour"}, "-1 (none on RabbitMQ 4; a single delivery on 3.10)"},
		"placeholders in values": {Arguments{"x-dead-letter-routing-key": "{live}"}, Arguments{"x-dead-letter-routing-key": "{want}"}, []string{`x-dead-letter-routing-key "{live}" "{want}" changes_behaviour`}, `routed by "{want}" instead of "{live}"`},
		"sorted": {
			Arguments{"x-b": int64(1), ArgOverflow: "reject-publish"},
			Arguments{"x-a": int64(1), "x-c": int64(1)},
			[]string{`x-a - 1 unknown_argument`, `x-b 1 - changes_behaviour`, `x-c - 1 unknown_argument`, `x-overflow "reject-publish" - changes_behaviour`},
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			diffs := DiffArguments(tc.want, tc.live)
			if got := lines(diffs); !slices.Equal(got, tc.diffs) {
				t.Fatalf("differences %q, want %q", got, tc.diffs)
			}
			if len(diffs) > 0 && !strings.Contains(diffs[0].Explanation, tc.explains) {
				t.Errorf("explanation %q does not say %q", diffs[0].Explanation, tc.explains)
			}
		})
	}
}

// lines writes each difference as "key want live meaning".
func lines(diffs []Difference) []string {
	var out []string
	for _, d := range diffs {
		dash := func(s string) string {
			if s == "" {
				return "-"
			}
			return s
		}
		out = append(out, fmt.Sprintf("%s %s %s %s", d.Key, dash(d.Want), dash(d.Live), d.Meaning))
	}
	return out
}

func TestDiffQueue(t *testing.T) {
	t.Parallel()
	quorum := Queue{Name: "orders", Type: Quorum, Arguments: Arguments{ArgQueueType: "quorum", ArgDeliveryLimit: int64(50)}}
	classic := Queue{Name: "orders", Type: Classic, Arguments: Arguments{ArgQueueType: "classic"}}
	live := func(kind QueueType, args Arguments) LiveQueue {
		return LiveQueue{Name: "orders", Type: kind, Durable: true, Arguments: args}
	}
	for name, tc := range map[string]struct {
		want  Queue
		live  LiveQueue
		diffs []string
	}{
		"equal":                        {quorum, live(Quorum, quorum.Arguments), nil},
		"equal, type unknown":          {quorum, live("", quorum.Arguments), nil},
		"type reported, not argued":    {quorum, live(Quorum, Arguments{ArgDeliveryLimit: 50.0}), []string{`x-queue-type "quorum" - equal_in_effect`}},
		"classic without the argument": {classic, live(Classic, nil), []string{`x-queue-type "classic" - equal_in_effect`}},
		"classic, type unknown":        {classic, live("", nil), []string{`x-queue-type "classic" - equal_in_effect`}},
		"turned by the vhost":          {classic, live(Quorum, nil), []string{`x-queue-type "classic" "quorum" changes_behaviour`}},
		"turned, argument kept":        {classic, live(Quorum, Arguments{ArgQueueType: "classic"}), []string{`x-queue-type "classic" "quorum" changes_behaviour`}},
		"of the wrong type":            {quorum, live(Classic, nil), []string{"x-delivery-limit 50 - changes_behaviour", `x-queue-type "quorum" "classic" changes_behaviour`}},
		"ignored by classic": {
			classic, live(Classic, Arguments{ArgQueueType: "classic", ArgDeliveryLimit: 3.0, ArgDeadLetterStrategy: "at-most-once", ArgMaxLength: 5.0}),
			[]string{`x-dead-letter-strategy - "at-most-once" equal_in_effect`, "x-delivery-limit - 3 equal_in_effect", "x-max-length - 5 changes_behaviour"},
		},
		"not ignored by quorum": {
			classic, live(Quorum, Arguments{ArgQueueType: "quorum", ArgDeliveryLimit: 3.0}),
			[]string{"x-delivery-limit - 3 changes_behaviour", `x-queue-type "classic" "quorum" changes_behaviour`},
		},
		"transient": {
			quorum,
			LiveQueue{Name: "orders", Type: Quorum, AutoDelete: true, Exclusive: true, Arguments: quorum.Arguments},
			[]string{"auto_delete false true changes_behaviour", "durable true false changes_behaviour", "exclusive false true changes_behaviour"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			diffs := DiffQueue(tc.want, tc.live)
			if got := lines(diffs); !slices.Equal(got, tc.diffs) {
				t.Errorf("differences %q, want %q", got, tc.diffs)
			}
			for _, d := range diffs {
				if d.Explanation == "" || strings.Contains(d.String(), "{") {
					t.Errorf("explanation %q", d)
				}
			}
		})
	}
}

// What is built and read back from the management API, which has one kind of number, does not differ.
func TestDiffQueueOfWhatWasBuilt(t *testing.T) {
	t.Parallel()
	for _, c := range Conventions() {
		for _, tc := range contractCases(c) {
			objects, err := tc.Spec.spec(c).Build()
			if err != nil {
				t.Fatal(err)
			}
			for _, q := range objects.Queues {
				var raw map[string]any
				if err := json.Unmarshal([]byte(CanonicalJSON(q.Arguments)), &raw); err != nil {
					t.Fatal(err)
				}
				live, err := NormaliseArguments(raw)
				if err != nil {
					t.Fatal(err)
				}
				if diffs := DiffQueue(q, LiveQueue{Name: q.Name, Type: q.Type, Durable: true, Arguments: live}); len(diffs) > 0 {
					t.Errorf("%s, %s: queue %q differs from itself: %v", c, tc.Name, q.Name, diffs)
				}
			}
		}
	}
}

func TestBreaking(t *testing.T) {
	t.Parallel()
	diffs := DiffArguments(Arguments{ArgQueueType: "classic", ArgMessageTTL: int64(1)}, Arguments{"x-new": int64(1)})
	for _, tc := range []struct {
		ignored []string
		want    bool
	}{
		{nil, true},
		{[]string{ArgMessageTTL}, true},
		{[]string{"x-new"}, true},
		{[]string{"x-new", ArgMessageTTL}, false},
	} {
		if got := Breaking(diffs, tc.ignored...); got != tc.want {
			t.Errorf("Breaking(%q) = %v", tc.ignored, got)
		}
	}
	if Breaking(nil) || Breaking(DiffArguments(Arguments{ArgQueueType: "classic"}, nil)) {
		t.Error("equal in effect is breaking")
	}
}

// Every argument the package knows explains itself, whichever side has it.
func TestEveryEffectExplains(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for key := range effects {
		for _, d := range []Difference{
			{Key: key, Want: "1000", Live: "2000"}, {Key: key, Want: "1000"}, {Key: key, Live: "2000"},
		} {
			if (key == KeyDurable || key == KeyAutoDelete || key == KeyExclusive) && (d.Want == "" || d.Live == "") {
				continue // properties are never absent
			}
			text := explain(d)
			if text == "" || strings.ContainsAny(text, "{}%") || strings.HasSuffix(text, ".") {
				t.Errorf("%s: explanation %q", d.Key, text)
			}
			for _, value := range []string{d.Want, d.Live} {
				if value != "" && strings.Contains(text, "instead") && d.Want != "" && d.Live != "" && !strings.Contains(text, show(key, value)) {
					t.Errorf("%s: explanation %q does not name %s", d.Key, text, value)
				}
			}
			seen[text] = key
		}
	}
	for _, key := range []string{
		ArgQueueType, ArgMessageTTL, ArgDeadLetterExchange, ArgDeadLetterKey, ArgDeadLetterStrategy, ArgOverflow, ArgDeliveryLimit, ArgMaxPriority,
		ArgConsumerTimeout, ArgMaxLength, ArgMaxLengthBytes, ArgExpires, ArgSingleActiveConsumer, ArgDelayedRetryType, ArgDelayedRetryMin, ArgDelayedRetryMax,
	} {
		if _, ok := effects[key]; !ok {
			t.Errorf("%s explains nothing", key)
		}
	}
}

func show(key, value string) string {
	if f := effects[key].show; f != nil {
		return f(value)
	}
	return value
}

func TestDifferenceString(t *testing.T) {
	t.Parallel()
	got := DiffArguments(Arguments{ArgMessageTTL: int64(5000)}, nil)[0].String()
	if !strings.HasPrefix(got, "x-message-ttl: want 5000, live absent: messages stay") {
		t.Errorf("String() = %q", got)
	}
}

func TestDiffBindings(t *testing.T) {
	t.Parallel()
	bind := func(source, queue, key string, args Arguments) Binding {
		return Binding{Source: source, Destination: queue, DestinationType: BindingToQueue, RoutingKey: key, Arguments: args}
	}
	for name, tc := range map[string]struct{ want, live, missing, unexpected []Binding }{
		"nothing":          {},
		"equal":            {want: []Binding{bind("e", "q", "k", nil)}, live: []Binding{bind("e", "q", "k", Arguments{})}},
		"type left out":    {want: []Binding{{Source: "e", Destination: "q", RoutingKey: "k"}}, live: []Binding{bind("e", "q", "k", nil)}},
		"width of numbers": {want: []Binding{bind("e", "q", "", Arguments{"n": int64(5)})}, live: []Binding{bind("e", "q", "", Arguments{"n": 5.0})}},
		"text and number": {
			want: []Binding{bind("e", "q", "", Arguments{"n": int64(5)})}, live: []Binding{bind("e", "q", "", Arguments{"n": "5"})},
			missing: []Binding{bind("e", "q", "", Arguments{"n": int64(5)})}, unexpected: []Binding{bind("e", "q", "", Arguments{"n": "5"})},
		},
		"default exchange":  {live: []Binding{bind("", "q", "q", nil)}},
		"repeated":          {want: []Binding{bind("e", "q", "k", nil), bind("e", "q", "k", nil)}, missing: []Binding{bind("e", "q", "k", nil)}},
		"another type":      {want: []Binding{bind("e", "q", "k", nil)}, live: []Binding{{Source: "e", Destination: "q", DestinationType: BindingToExchange, RoutingKey: "k"}}, missing: []Binding{bind("e", "q", "k", nil)}, unexpected: []Binding{{Source: "e", Destination: "q", DestinationType: BindingToExchange, RoutingKey: "k"}}},
		"order of each":     {want: []Binding{bind("b", "q", "", nil), bind("a", "q", "", nil), bind("c", "q", "", nil)}, live: []Binding{bind("y", "q", "", nil), bind("a", "q", "", nil), bind("x", "q", "", nil)}, missing: []Binding{bind("b", "q", "", nil), bind("c", "q", "", nil)}, unexpected: []Binding{bind("y", "q", "", nil), bind("x", "q", "", nil)}},
		"fields do not run": {want: []Binding{bind("a", "bc", "", nil)}, live: []Binding{bind("ab", "c", "", nil)}, missing: []Binding{bind("a", "bc", "", nil)}, unexpected: []Binding{bind("ab", "c", "", nil)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			missing, unexpected := DiffBindings(tc.want, tc.live)
			if !reflect.DeepEqual(missing, tc.missing) || !reflect.DeepEqual(unexpected, tc.unexpected) {
				t.Errorf("missing %+v, unexpected %+v; want %+v and %+v", missing, unexpected, tc.missing, tc.unexpected)
			}
		})
	}
	if got := bind("e", "q", "k", Arguments{"b": "x", "a": int64(1)}).Key(); got != `["e","queue","q","k",{"a":"1","b":"\"x\""}]` {
		t.Errorf("Key() = %s", got)
	}
}
