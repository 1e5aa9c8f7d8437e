package topology

import (
	"testing"
	"time"
)

// Whatever is a policy has one form, which is a policy of the same form; nothing else panics.
func FuzzCanonicalPolicy(f *testing.F) {
	for _, seed := range []string{
		"", "{}", `{"Statement":[]}`, statement(anyone), statement(`"Sid":"","Principal":{"AWS":["arn:aws:iam::123456789012:root",""],"Service":"s"},"Action":["SQS:sendmessage","*"],"Resource":[]`),
		statement(anyone + `,"Condition":{"Bool":{"aws:SecureTransport":[true,"true",1.0,1e9]}},"Other":[1.0,{"a":null}]`), `{"Version":null,"Id":"","Statement":{"Effect":"Deny","Action":"sqs:\u212Aick"}}`,
		`{"Statement":[{"Effect":"Allow","X":1e999},{"Effect":"Allow","X":1.0}]}`, `{"Statement":{"Effect":"Allow","Condition":{"Bool":{"\u0130":1,"i\u0307":2}}}}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, document string) {
		canonical, err := CanonicalPolicy(document)
		if err != nil {
			return
		}
		if again, err := CanonicalPolicy(canonical); err != nil || again != canonical {
			t.Fatalf("%q becomes\n%s\nand then\n%s, %v", document, canonical, again, err)
		}
		want := SQSAttributes{AttrPolicy: document, AttrRedrivePolicy: document, AttrRedriveAllowPolicy: document}
		if diffs := DiffSQSAttributes(want, want.Managed()); len(diffs) > 0 {
			t.Fatalf("%q differs from its one form: %v", document, diffs)
		}
	})
}

// No two topics of a place and convention have a queue in common, whatever they are called, and no name that one derives
// is accepted as another's; what is accepted, SQS takes.
func FuzzSQSNames(f *testing.F) {
	for i, a := range oddNames {
		f.Add(uint8(i), a, "", oddNames[(i+1)%len(oddNames)], "", i%2 == 0)
	}
	f.Add(uint8(0), "orders", "", "orders-dlq", "", false)
	f.Add(uint8(0), "orders", "", "orders.fifo", "", true)
	f.Add(uint8(1), "a-b", "", "a", "b", true)
	f.Add(uint8(1), "a", "dlq", "a-dlq", "", false)
	f.Fuzz(func(t *testing.T, convention uint8, topicA, groupA, topicB, groupB string, fifo bool) {
		c := Conventions()[int(convention)%len(Conventions())]
		a := SQSIdentity{Topic: topicA, Convention: c, ConsumerGroup: groupA, FIFO: fifo, Region: "eu-central-1", Account: "123456789012"}
		b := a
		b.Topic, b.ConsumerGroup = topicB, groupB
		for _, id := range []SQSIdentity{a, b} {
			if id.Validate(RoleWork) != nil {
				return
			}
			for role, name := range map[Role]string{RoleWork: id.WorkQueueName(), RoleDeadLetter: id.DeadLetterQueueName(), RoleParked: id.ParkedQueueName()} {
				if name == "" {
					continue
				}
				if err := id.validateSQSQueue("queue", name); err != nil {
					t.Fatalf("%+v: %v", id, err)
				}
				where, read, err := ParseSQSARN(id.ARN(name))
				if err != nil || read != name || where.FIFO != fifo {
					t.Fatalf("%+v: ARN %q is read as %+v, %q, %v", id, id.ARN(name), where, read, err)
				}
				topic, what, isFIFO, ok := SQSTopicOf(c, id.ConsumerGroup, name)
				if !ok || topic != id.Topic || what != role || isFIFO != fifo {
					t.Fatalf("%+v: queue %q is read as %q of %q, %t, %t", id, name, what, topic, isFIFO, ok)
				}
			}
		}
		if groupA != "" || groupB != "" || topicA == topicB {
			return // groups share names as on RabbitMQ: see FuzzNames
		}
		for _, name := range []string{a.DeadLetterQueueName(), a.ParkedQueueName()} {
			if name != "" && (name == b.WorkQueueName() || name == b.DeadLetterQueueName() || name == b.ParkedQueueName()) {
				t.Fatalf("%+v and %+v both have the queue %q", a, b, name)
			}
		}
	})
}

// Whatever topic is accepted has a manifest that reads back, with attributes that read back as the settings they are of.
func FuzzSQSSpec(f *testing.F) {
	f.Add("orders", false, false, 10, int64(5), int64(0), int64(0), int64(0), 0.2)
	f.Add("orders", true, true, 990, int64(1), int64(60), int64(60), int64(3600), 0.0)
	f.Add("o", true, false, 1<<62, int64(43200), int64(1209600), int64(43200), int64(1<<40), 0.99)
	f.Fuzz(func(t *testing.T, topic string, fifo, send bool, retries int, delay, retention, visibility, giveUp int64, jitter float64) {
		s := SQSSpec{
			SQSIdentity:      SQSIdentity{Topic: topic, FIFO: fifo, Region: "eu-central-1", Account: "123456789012"},
			SQSQueueSettings: SQSQueueSettings{Retention: time.Duration(retention) * time.Second, VisibilityTimeout: time.Duration(visibility) * time.Second},
			Retry:            RetryPolicy{MaxRetries: retries, Delays: []time.Duration{time.Duration(delay) * time.Second}, GiveUpAfter: time.Duration(giveUp) * time.Second, Jitter: jitter},
		}
		s.DeadLetterQueue = s.DeadLetterQueueName()
		if send {
			s.DeadLetterVia, s.ParkedQueue = ViaSend, s.ParkedQueueName()
		}
		m, err := s.Manifest()
		if err != nil {
			return
		}
		manifestFixedPoint(t, m.Encode())
		if back, err := DecodeManifest(m.Encode()); err != nil || back.MaxReceiveCount() <= retries || back.MaxReceiveCount() > MaxReceives {
			t.Fatalf("%d retries and %d receives; %v", retries, back.MaxReceiveCount(), err)
		}
		if settings := SQSSettingsOf(m.WorkQueue.Attributes, RoleWork); settings.Retention != 0 && settings.Retention != s.Retention {
			t.Fatalf("retention %s is read as %s", s.Retention, settings.Retention)
		}
		s.Warnings()
	})
}
