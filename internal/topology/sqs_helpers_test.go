package topology

import (
	"testing"
	"time"
)

// sqsHere is where the tests' queues are.
var sqsHere = SQSIdentity{Topic: "orders", Region: "eu-central-1", Account: "123456789012"}

// sqsPlain is a topic with a dead-letter queue and three tiers.
func sqsPlain(t testing.TB) SQSSpec {
	t.Helper()
	s := SQSSpec{SQSIdentity: sqsHere, Retry: RetryPolicy{MaxRetries: DefaultMaxRetries, Delays: durations(t, "5s 30s 2m"), Jitter: DefaultJitter}}
	s.DeadLetterQueue = s.DeadLetterQueueName()
	return s
}

// sqsFIFO is the same in order.
func sqsFIFO(t testing.TB) SQSSpec {
	t.Helper()
	s := sqsPlain(t)
	s.FIFO = true
	s.DeadLetterQueue = s.DeadLetterQueueName()
	return s
}

// sqsSending sends its dead letters, and parks.
func sqsSending(t testing.TB) SQSSpec {
	t.Helper()
	s := sqsPlain(t)
	s.DeadLetterVia, s.ParkedQueue = ViaSend, s.ParkedQueueName()
	return s
}

func sqsManifestOf(t testing.TB, s SQSSpec) Manifest {
	t.Helper()
	m, err := s.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// sqsCase is a topic on SQS that a golden file and a picture pin, with its dead ends.
type sqsCase struct {
	name string
	spec SQSSpec
	ends []SQSDeadEnd
}

func sqsCases(t testing.TB) []sqsCase {
	t.Helper()
	ends := func(s SQSSpec) []SQSDeadEnd {
		var out []SQSDeadEnd
		if s.DeadLetterQueue != "" {
			out = append(out, SQSDeadEnd{SQSIdentity: s.SQSIdentity, Role: RoleDeadLetter, Name: s.DeadLetterQueue})
		}
		if s.ParkedQueue != "" {
			out = append(out, SQSDeadEnd{SQSIdentity: s.SQSIdentity, Role: RoleParked, Name: s.ParkedQueue})
		}
		return out
	}
	sending := sqsSending(t)
	sending.SQSQueueSettings = SQSQueueSettings{
		VisibilityTimeout: 2 * time.Minute, Retention: 10 * Day, Delay: 5 * time.Second, ReceiveWait: 20 * time.Second, MaxMessageSize: 65536,
		KMSKey: "alias/shop", KMSDataKeyReuse: time.Hour, Tags: map[string]string{"team": "shop"},
		Policy: `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":{"Service":"sns.amazonaws.com"},"Action":"SQS:SendMessage","Resource":"*"}}`,
	}
	sending.HandlerTimeout, sending.Retry.GiveUpAfter, sending.DeadLetterRetention = time.Minute, 2*Day, MaxRetention
	fifo := sqsFIFO(t)
	fifo.ParkedQueue, fifo.Park = fifo.ParkedQueueName(), ParkPublish
	fifo.ContentBasedDeduplication, fifo.DeduplicationScope, fifo.ThroughputLimit = true, ScopeMessageGroup, LimitPerGroupID
	shove := sqsPlain(t)
	shove.Convention, shove.ConsumerGroup, shove.Region, shove.SSE = Shove, "billing", "cn-north-1", SSENone
	shove.DeadLetterQueue = shove.DeadLetterQueueName()
	losing := sqsPlain(t)
	losing.DeadLetterQueue, losing.AllowMessageLoss, losing.Retry, losing.Endpoint = "", true, RetryPolicy{}, "http://127.0.0.1:15432/"
	var out []sqsCase
	for _, c := range []sqsCase{
		{name: "standard_redrive", spec: sqsPlain(t)},
		{name: "standard_send_parked", spec: sending},
		{name: "fifo", spec: fifo},
		{name: "shove", spec: shove},
		{name: "no_dead_end", spec: losing},
	} {
		c.ends = ends(c.spec)
		out = append(out, c)
	}
	return out
}
