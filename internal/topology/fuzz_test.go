package topology

import (
	"bytes"
	"encoding/json"
	"reflect"
	"regexp"
	"testing"
	"time"
)

// Whatever is read as a duration is written in one form, which reads as the same.
func FuzzParseDuration(f *testing.F) {
	for _, seed := range []string{"", "0s", "500ms", "5s", "2m", "1h30m", "1d", "1d2h3m4s5ms", "90s", "007s", "-5s", "5", "s", "1s1s", "5µs", "106751d23h47m16s854ms", "9223372036854775807ms"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseDuration(text)
		if err != nil {
			return
		}
		if d < 0 || d%time.Millisecond != 0 {
			t.Fatalf("%q is read as %d", text, d)
		}
		canonical := FormatDuration(d)
		again, err := ParseDuration(canonical)
		if err != nil || again != d || FormatDuration(again) != canonical {
			t.Fatalf("%q is written as %q and read as %d, %v; want %d", text, canonical, again, err, d)
		}
	})
}

// Whatever decodes encodes to something that decodes to the same and encodes
// to the same, and can be drawn and given permissions for.
func FuzzDecodeManifest(f *testing.F) {
	for _, c := range Conventions() {
		for _, tc := range contractCases(c) {
			m, err := tc.Spec.spec(c).Manifest()
			if err != nil {
				f.Fatal(err)
			}
			f.Add(m.Encode())
		}
	}
	for _, tc := range sqsCases(f) {
		f.Add(sqsManifestOf(f, tc.spec).Encode())
	}
	for _, seed := range []string{"", "{}", "null", `{"version":1}`, `{"version":2}`, `"{}"`, `{"version":1,"parked":null}`, `[1]`, `{"version":1e0}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		manifestFixedPoint(t, text)
		// Few mutations keep the fingerprint right; make it right, to get behind it.
		var loose Manifest
		if json.Unmarshal(text, &loose) == nil {
			loose.Fingerprint = loose.fingerprint()
			manifestFixedPoint(t, loose.Encode())
		}
	})
}

func manifestFixedPoint(t *testing.T, text []byte) {
	t.Helper()
	m, err := DecodeManifest(text)
	if err != nil {
		return
	}
	encoded := m.Encode()
	again, err := DecodeManifest(encoded)
	if err != nil {
		t.Fatalf("the encoding of %q does not decode: %v", text, err)
	}
	if !reflect.DeepEqual(again, m) || !bytes.Equal(again.Encode(), encoded) {
		t.Fatalf("%q has no fixed point:\n%s\n%s", text, encoded, again.Encode())
	}
	plainMermaid(t, m.Mermaid())
	for _, role := range AccessRoles() {
		if m.Broker == BrokerSQS {
			if _, _, err := IAMPolicy(m, role); err != nil {
				t.Fatal(err)
			}
			continue
		}
		permissions, err := Permissions(m, role)
		if err != nil {
			t.Fatal(err)
		}
		for _, pattern := range []string{permissions.Configure, permissions.Write, permissions.Read} {
			if _, err := regexp.Compile(pattern); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// No two topics of a vhost and convention give one queue different arguments,
// and no topic is accepted whose name another accepted topic derives.
//
// Two exceptions are inherent in shove's consumer groups and are refused where
// the broker is known, not here: the groups of one topic share its work queue,
// and a group's derived names start with "{t}-{group}", which may be another
// topic's name, or another topic's with another group.
func FuzzNames(f *testing.F) {
	for i, a := range oddNames {
		f.Add(uint8(i), a, "", oddNames[(i+1)%len(oddNames)], "", uint32(5000))
	}
	f.Add(uint8(1), "a-b", "", "a", "b", uint32(5000))
	f.Add(uint8(1), "a-b", "c", "a", "b-c", uint32(1000))
	f.Add(uint8(1), "a", "b", "a", "c", uint32(1000))
	f.Add(uint8(1), "a", "dlq", "a-dlq", "", uint32(1000))
	f.Add(uint8(0), "a", "", "a-hold-5s", "", uint32(500))
	f.Add(uint8(0), "a", "", "a-hold-5s.s1", "", uint32(5000))
	f.Add(uint8(2), "a", "", "a.retry.5m", "", uint32(300_000))
	f.Add(uint8(3), "a", "", "a.retry.1.s1", "", uint32(300_000))
	f.Add(uint8(3), "amq", "", "b", "", uint32(300_000))
	f.Add(uint8(4), "a", "", "a.dead", "", uint32(300_000))
	f.Fuzz(func(t *testing.T, convention uint8, topicA, groupA, topicB, groupB string, ms uint32) {
		c := Conventions()[int(convention)%len(Conventions())]
		a := Identity{Topic: topicA, Convention: c, ConsumerGroup: groupA}
		b := Identity{Topic: topicB, Convention: c, ConsumerGroup: groupB}
		objectsA, okA := everything(a, ms)
		objectsB, okB := everything(b, ms)
		if okA {
			noneIsATopic(t, a, objectsA)
		}
		if okB {
			noneIsATopic(t, b, objectsB)
		}
		if !okA || !okB || a == b {
			return
		}
		sharedByGroups := c == Shove && (groupA != "" || groupB != "") && (a.Topic == b.Topic || a.base() == b.base())
		if sharedByGroups {
			return
		}
		queues := map[string]Queue{}
		for _, q := range objectsA.Queues {
			queues[q.Name] = q
		}
		for _, q := range objectsB.Queues {
			if other, shared := queues[q.Name]; shared && (!reflect.DeepEqual(other.Arguments, q.Arguments) || other.Role != q.Role) {
				t.Fatalf("%+v and %+v both have queue %q, with arguments %v and %v", a, b, q.Name, other.Arguments, q.Arguments)
			}
		}
	})
}

// everything builds all that an identity can have, with a ladder around a delay; ok is false where the identity is refused.
func everything(id Identity, ms uint32) (Objects, bool) {
	s := Spec{Identity: id, Retry: RetryPolicy{Strategy: Republish, MaxRetries: 3}}
	if id.Validate() != nil {
		return Objects{}, false
	}
	s.DeadLetterQueue, s.ParkedQueue = s.DeadLetterQueueName(), s.ParkedQueueName()
	first := time.Duration(max(1, ms%1_000_000_000)) * time.Millisecond
	if id.Convention == Shove {
		first = RoundUp(first, time.Second)
	}
	tiers := []time.Duration{first, 2 * first, 3 * first}
	switch id.Convention {
	case Queuey:
		s.Retry = RetryPolicy{}
	case Shove:
		s.HoldDelays = tiers
		if ms%2 == 0 { // over shards, which keep the order by waiting in place
			s.Sequenced, s.SequenceShards, s.Retry = true, 3, RetryPolicy{}
			s.Extra = map[Role]Arguments{RoleWork: {ArgConsumerTimeout: MaxDelay.Milliseconds()}}
		}
	case RabbitKit, Redeliver:
		s.HoldDelays, s.JitterShards, s.JitterFactor = tiers, 3, 0.1
	default:
		s.HoldDelays = tiers
	}
	objects, err := s.Build()
	return objects, err == nil
}

// noneIsATopic fails if a name that is derived from a topic is accepted as another topic's.
func noneIsATopic(t *testing.T, id Identity, objects Objects) {
	t.Helper()
	derived := []string{id.MigratingQueueName()}
	for _, q := range objects.Queues {
		derived = append(derived, q.Name)
		if len(q.Name) > MaxNameBytes || ValidateName("queue", q.Name) != nil {
			t.Fatalf("%+v: queue %q is no name", id, q.Name)
		}
	}
	for _, e := range objects.Exchanges {
		if !e.Shared {
			derived = append(derived, e.Name)
		}
	}
	for _, name := range derived {
		if name != id.Topic && (Identity{Topic: name, Convention: id.Convention}).Validate() == nil {
			t.Fatalf("%+v derives %q, which is accepted as a topic", id, name)
		}
	}
}

// What JSON holds as arguments, read exactly or as floats, is in one normal form, which is written and read back as it is.
func FuzzNormaliseArguments(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":1}`, `{"a":-0.0}`, `{"a":1e300}`, `{"a":9223372036854775807}`, `{"a":9223372036854775808}`, `{"a":9.3e18}`, `{"a":1e-7}`,
		`{"a":"5000","b":5000,"c":5000.0}`, `{"a":[1,[null,{"b":true}]]}`, `{"a":"\ud800"}`, `{"a":"<&>\u2028"}`, `{"":{}}`, `null`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.UseNumber()
		var exact, floats map[string]any
		if dec.Decode(&exact) == nil {
			fixedPoint(t, exact)
		}
		if json.Unmarshal(text, &floats) == nil {
			fixedPoint(t, floats)
		}
	})
}

func fixedPoint(t *testing.T, raw map[string]any) {
	t.Helper()
	args, err := NormaliseArguments(raw)
	if err != nil {
		return
	}
	if again, err := NormaliseArguments(args); err != nil || !reflect.DeepEqual(again, args) {
		t.Fatalf("normalising %v again gives %v, %v", args, again, err)
	}
	back, err := ParseCanonical(args.Canonical())
	if err != nil || !reflect.DeepEqual(back, args) {
		t.Fatalf("%#v is written as %v and read as %#v, %v", args, args.Canonical(), back, err)
	}
	text, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	var read Arguments
	if err := json.Unmarshal(text, &read); err != nil || !reflect.DeepEqual(read, args) {
		t.Fatalf("%#v is written as %s and read as %#v, %v", args, text, read, err)
	}
	if diffs := DiffArguments(args, Arguments(raw)); len(diffs) > 0 {
		t.Fatalf("arguments differ from their normal form: %v", diffs)
	}
}
