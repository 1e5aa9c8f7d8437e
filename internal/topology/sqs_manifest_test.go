package topology

import (
	"bytes"
	"maps"
	"strings"
	"testing"
	"time"
)

// The fingerprint of one plain topic on SQS, spelled out: if this changes, so does that of every manifest that applications hold.
const plainSQSFingerprint = "sha256:3b6c3b6f"

func TestSQSManifest(t *testing.T) {
	t.Parallel()
	m := sqsManifestOf(t, sqsPlain(t))
	if !strings.HasPrefix(m.Fingerprint, plainSQSFingerprint) {
		t.Errorf("fingerprint %s, want %s...", m.Fingerprint, plainSQSFingerprint)
	}
	if text := m.Encode(); bytes.Contains(text, []byte("vhost")) || bytes.Contains(text, []byte("arguments")) {
		t.Errorf("what RabbitMQ has is in the manifest:\n%s", text)
	}
	if m.MaxReceiveCount() != 11 || m.Retry.ConsumerTimeout.String() != "12h" || m.Final != FinalBroker || m.Park != ParkReject || m.Sequence != nil {
		t.Errorf("manifest %+v", m)
	}
	if got := m.WorkQueues(); len(got) != 1 || got[0].Name != "orders" {
		t.Errorf("work queues %v", got)
	}
	for name, tc := range map[string]struct {
		change func(*SQSSpec)
		same   bool
		says   func(Manifest) bool
	}{
		"send": {func(s *SQSSpec) { s.DeadLetterVia = ViaSend }, false, func(m Manifest) bool {
			return m.Final == FinalPublish && m.Park == ParkReject && m.MaxReceiveCount() == 50
		}},
		"send, park": {func(s *SQSSpec) { s.DeadLetterVia, s.ParkedQueue = ViaSend, "bad" }, false, func(m Manifest) bool { return m.Park == ParkPublish && m.Parked.RoutingKey == "bad" }},
		"park":       {func(s *SQSSpec) { s.ParkedQueue, s.Park = "bad", ParkPublish }, false, func(m Manifest) bool { return m.Park == ParkPublish && m.Final == FinalBroker }},
		"loss": {func(s *SQSSpec) { s.DeadLetterQueue, s.AllowMessageLoss = "", true }, false, func(m Manifest) bool {
			return m.DeadLetter == nil && m.Final == FinalBroker && m.MaxReceiveCount() == 0
		}},
		"fifo": {func(s *SQSSpec) { s.FIFO, s.DeadLetterQueue = true, "orders-dlq.fifo" }, false, func(m Manifest) bool {
			return m.Sequence != nil && m.WorkQueue.Type == FIFO && m.WorkQueue.Name == "orders.fifo" && m.Topic == "orders"
		}},
		"policy":     {func(s *SQSSpec) { s.Policy = statement(anyone) }, true, func(m Manifest) bool { return m.WorkQueue.Attributes[AttrPolicy] == "" }},
		"tags":       {func(s *SQSSpec) { s.Tags = map[string]string{"a": "b"} }, true, nil},
		"jitter":     {func(s *SQSSpec) { s.Retry.Jitter, s.Retry.GiveUpAfter = 0.5, Day }, true, func(m Manifest) bool { return m.Retry.GiveUpAfter == Duration(Day) }},
		"retries":    {func(s *SQSSpec) { s.Retry.MaxRetries = 11 }, false, func(m Manifest) bool { return m.MaxReceiveCount() == 12 }},
		"visibility": {func(s *SQSSpec) { s.VisibilityTimeout = time.Minute }, false, func(m Manifest) bool { return m.WorkQueue.Attributes.VisibilityTimeout() == time.Minute }},
		"account":    {func(s *SQSSpec) { s.Account = "000000000000" }, false, func(m Manifest) bool { return strings.Contains(m.DeadLetter.URL, "/000000000000/orders-dlq") }},
		"endpoint":   {func(s *SQSSpec) { s.Endpoint = "http://localhost:1" }, false, func(m Manifest) bool { return m.WorkQueue.URL == "http://localhost:1/123456789012/orders" }},
	} {
		s := sqsPlain(t)
		tc.change(&s)
		changed := sqsManifestOf(t, s)
		if (changed.Fingerprint == m.Fingerprint) != tc.same {
			t.Errorf("%s: fingerprint %s, plain %s", name, changed.Fingerprint, m.Fingerprint)
		}
		if tc.says != nil && !tc.says(changed) {
			t.Errorf("%s: manifest\n%s", name, changed.Encode())
		}
	}
}

// Texts that no topic resource on SQS would have written.
func TestDecodeSQSManifestRefuses(t *testing.T) {
	t.Parallel()
	good := string(sqsManifestOf(t, sqsSending(t)).Encode())
	for name, tc := range map[string]struct {
		old, by    string
		essentials []string
	}{
		"unknown":      {`"topic"`, `"shop": 1, "topic"`, []string{`field "shop" is unknown`}},
		"vhost":        {`"topic"`, `"vhost": "/", "topic"`, []string{"fingerprint"}},
		"empty vhost":  {`"topic"`, `"vhost": "", "topic"`, []string{`field "vhost" is unknown`}},
		"arguments":    {`"type": "standard"`, `"arguments": {}, "type": "standard"`, []string{`field "work_queue.arguments" is unknown`}},
		"region":       {"eu-central-1:123456789012:orders\"", "eu-central-2:123456789012:orders\"", []string{"fingerprint does not match"}},
		"a number":     {`"VisibilityTimeout": "30"`, `"VisibilityTimeout": 30`, []string{"work_queue.attributes", "number"}},
		"other broker": {`"broker": "sqs"`, `"broker": "kafka"`, []string{`"kafka"`, `"rabbitmq" or "sqs"`}},
		"no strategy":  {`"strategy": "in_place"`, `"strategy": "republish"`, []string{`"republish"`, `"in_place"`}},
		"retries":      {`"max_retries": 10`, `"max_retries": 50`, []string{"after 50 receives", "50 retries take one more"}},
		"timeout":      {`"consumer_timeout": "12h"`, `"consumer_timeout": "30m"`, []string{"consumer_timeout 30m", "12h"}},
		"milliseconds": {`"5s"`, `"500ms"`, []string{"delay 500ms", "use 1s"}},
		"long":         {`"2m"`, `"13h"`, []string{"delay 13h", "11h59m"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(good, tc.old, tc.by, 1)
			if text == good {
				t.Fatalf("the manifest has no %q:\n%s", tc.old, good)
			}
			_, err := DecodeManifest([]byte(text))
			refused(t, err, append(tc.essentials, "manifest")...)
		})
	}
}

// Manifests whose fingerprint is right and whose content no spec has.
func TestDecodeSQSManifestRefusesImpossible(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change     func(*Manifest)
		essentials []string
	}{
		"vhost":         {func(m *Manifest) { m.VHost = "/" }, []string{"no vhost"}},
		"hold queues":   {func(m *Manifest) { m.HoldQueues = []ManifestHoldQueue{{}} }, []string{"hold queues"}},
		"bindings":      {func(m *Manifest) { m.Bindings = []ManifestBinding{{}} }, []string{"bindings"}},
		"exchange":      {func(m *Manifest) { m.RetryExchange = "e" }, []string{"exchanges"}},
		"type":          {func(m *Manifest) { m.WorkQueue.Type = Quorum }, []string{`"quorum"`, `"standard" or "fifo"`}},
		"mixed":         {func(m *Manifest) { m.Parked.Type = FIFO }, []string{`"orders-parked"`, `"fifo"`}},
		"no order":      {func(m *Manifest) { m.WorkQueue.Type = FIFO }, []string{`"fifo"`, "in order"}},
		"order":         {func(m *Manifest) { m.Sequence = &ManifestSequence{} }, []string{`"standard"`, "in order"}},
		"shards":        {func(m *Manifest) { m.Sequence = &ManifestSequence{Exchange: "e"} }, []string{"no shards"}},
		"no name":       {func(m *Manifest) { m.WorkQueue.Name = "" }, []string{`its arn is that of "orders"`}},
		"no arn":        {func(m *Manifest) { m.DeadLetter.ARN = "" }, []string{`"orders-dlq": arn`}},
		"another's arn": {func(m *Manifest) { m.DeadLetter.ARN = m.WorkQueue.ARN }, []string{`its arn is that of "orders"`}},
		"no url":        {func(m *Manifest) { m.WorkQueue.URL = "" }, []string{`"orders": it has no url`}},
		"arguments":     {func(m *Manifest) { m.WorkQueue.Arguments = Arguments{"a": "b"} }, []string{"no arguments"}},
		"route":         {func(m *Manifest) { m.Parked.Exchange = "e" }, []string{`"orders-parked"`, "lead to no queue"}},
		"key":           {func(m *Manifest) { m.Parked.RoutingKey = "" }, []string{`"orders-parked"`, "lead to no queue"}},
		"visibility":    {func(m *Manifest) { m.WorkQueue.Attributes[AttrVisibilityTimeout] = "soon" }, []string{"VisibilityTimeout", `"soon"`}},
		"no redrive":    {func(m *Manifest) { delete(m.WorkQueue.Attributes, AttrRedrivePolicy) }, []string{"redrive policy does not lead to"}},
		"redrive":       {func(m *Manifest) { m.WorkQueue.Attributes[AttrRedrivePolicy] = "{}" }, []string{"redrive policy does not lead to"}},
		"to nobody":     {func(m *Manifest) { m.DeadLetter, m.Final = nil, FinalBroker }, []string{"a redrive policy and no dead-letter queue"}},
		"no dead end":   {func(m *Manifest) { m.DeadLetter = nil; delete(m.WorkQueue.Attributes, AttrRedrivePolicy) }, []string{`final = "publish" without a dead-letter queue`}},
		"park":          {func(m *Manifest) { m.Parked = nil }, []string{`park = "publish" without a parked queue`}},
		"no topic":      {func(m *Manifest) { m.Topic = "" }, []string{`topic ""`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := sqsManifestOf(t, sqsSending(t))
			m.WorkQueue.Attributes = maps.Clone(m.WorkQueue.Attributes)
			tc.change(&m)
			m.Fingerprint = m.fingerprint()
			_, err := DecodeManifest(m.Encode())
			refused(t, err, tc.essentials...)
		})
	}
	rabbit := manifestOf(t, plain(t, Redeliver))
	rabbit.WorkQueue.URL = "https://sqs"
	rabbit.Fingerprint = rabbit.fingerprint()
	_, err := DecodeManifest(rabbit.Encode())
	refused(t, err, `"orders"`, "no url, arn or attributes")
}

func TestRequireBroker(t *testing.T) {
	t.Parallel()
	m := sqsManifestOf(t, sqsPlain(t))
	if err := m.RequireBroker(BrokerSQS); err != nil {
		t.Error(err)
	}
	refused(t, m.RequireBroker(BrokerRabbitMQ), `"orders" is on Amazon SQS`, "not on RabbitMQ")
	m.Broker = "kafka"
	refused(t, m.RequireBroker(BrokerSQS), `on "kafka"`)
}

func TestOnSQS(t *testing.T) {
	t.Parallel()
	got, err := OnSQS(durations(t, "500ms 1s 1500ms 11h59m"))
	if err != nil || joinDelays(got) != "1s, 1s, 2s, 11h59m" {
		t.Errorf("%v, %v", got, err)
	}
	_, err = OnSQS(durations(t, "1s 12h"))
	refused(t, err, "delay 12h", "11h59m")
}
