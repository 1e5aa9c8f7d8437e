package topology

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSQSAttributes(t *testing.T) {
	t.Parallel()
	usual := SQSAttributes{
		"VisibilityTimeout": "30", "MessageRetentionPeriod": "345600", "DelaySeconds": "0", "ReceiveMessageWaitTimeSeconds": "0", "MaximumMessageSize": "",
		"SqsManagedSseEnabled": "true", "KmsMasterKeyId": "", "Policy": "", "RedriveAllowPolicy": "",
		"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:eu-central-1:123456789012:orders-dlq","maxReceiveCount":11}`,
	}
	with := func(changes SQSAttributes) SQSAttributes {
		out := maps.Clone(usual)
		maps.Copy(out, changes)
		return out
	}
	for name, tc := range map[string]struct {
		change func(*SQSSpec)
		want   SQSAttributes
	}{
		"plain":   {func(*SQSSpec) {}, usual},
		"forty":   {func(s *SQSSpec) { s.Retry.MaxRetries = 40 }, with(SQSAttributes{"RedrivePolicy": strings.Replace(usual["RedrivePolicy"], "11", "41", 1)})},
		"send":    {func(s *SQSSpec) { s.DeadLetterVia = ViaSend }, with(SQSAttributes{"RedrivePolicy": strings.Replace(usual["RedrivePolicy"], "11", "50", 1)})},
		"send 41": {func(s *SQSSpec) { s.DeadLetterVia, s.Retry.MaxRetries = ViaSend, 41 }, with(SQSAttributes{"RedrivePolicy": strings.Replace(usual["RedrivePolicy"], "11", "100", 1)})},
		"loss":    {func(s *SQSSpec) { s.DeadLetterQueue, s.AllowMessageLoss, s.Account = "", true, "" }, with(SQSAttributes{"RedrivePolicy": ""})},
		"managed": {func(s *SQSSpec) { s.SSE = SSEManaged }, usual},
		"none":    {func(s *SQSSpec) { s.SSE = SSENone }, with(SQSAttributes{"SqsManagedSseEnabled": "false"})},
		"kms":     {func(s *SQSSpec) { s.KMSKey = "k" }, with(SQSAttributes{"SqsManagedSseEnabled": "false", "KmsMasterKeyId": "k", "KmsDataKeyReusePeriodSeconds": "300"})},
		"everything": {func(s *SQSSpec) {
			s.SQSQueueSettings = SQSQueueSettings{
				VisibilityTimeout: time.Hour, Retention: MaxRetention, Delay: time.Second, ReceiveWait: 20 * time.Second, MaxMessageSize: 2048,
				SSE: SSEKMS, KMSKey: "k", KMSDataKeyReuse: Day, Policy: `{"Statement":{"Effect":"Deny","Principal":"*","Action":"*","Resource":"*"}}`,
			}
		}, with(SQSAttributes{
			"VisibilityTimeout": "3600", "MessageRetentionPeriod": "1209600", "DelaySeconds": "1", "ReceiveMessageWaitTimeSeconds": "20", "MaximumMessageSize": "2048",
			"SqsManagedSseEnabled": "false", "KmsMasterKeyId": "k", "KmsDataKeyReusePeriodSeconds": "86400",
			"Policy": `{"Statement":[{"Action":["*"],"Effect":"Deny","Principal":{"AWS":["*"]},"Resource":["*"]}],"Version":"2008-10-17"}`,
		})},
		"fifo": {func(s *SQSSpec) { s.FIFO, s.DeadLetterQueue = true, "orders-dlq.fifo" }, with(SQSAttributes{
			"FifoQueue": "true", "ContentBasedDeduplication": "false", "DeduplicationScope": "queue", "FifoThroughputLimit": "perQueue",
			"RedrivePolicy": strings.Replace(usual["RedrivePolicy"], "orders-dlq", "orders-dlq.fifo", 1),
		})},
	} {
		s := sqsPlain(t)
		tc.change(&s)
		got, err := s.Attributes()
		if err != nil || !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s:\n got %v\nwant %v (%v)", name, got, tc.want, err)
		}
		if diffs := DiffSQSAttributes(got, got.Set()); len(diffs) > 0 || len(got.Repair(got.Set())) > 0 {
			t.Errorf("%s: what is not set differs from what is not there: %v", name, diffs)
		}
	}
	unplaced := sqsPlain(t)
	unplaced.Account = ""
	_, err := unplaced.Attributes()
	refused(t, err, `topic "orders"`, "account id is not known")
	unplaced.DeadLetterQueue, unplaced.AllowMessageLoss = "", true
	_, err = unplaced.Manifest()
	refused(t, err, `topic "orders"`, "URLs and ARNs")
}

func TestSQSDeadEndAttributes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		end    SQSDeadEnd
		allow  string
		retain string
	}{
		"dead":         {SQSDeadEnd{SQSIdentity: sqsHere, Role: RoleDeadLetter}, `{"redrivePermission":"byQueue","sourceQueueArns":["arn:aws:sqs:eu-central-1:123456789012:orders"]}`, "1209600"},
		"its own name": {SQSDeadEnd{SQSIdentity: sqsHere, Role: RoleDeadLetter, Name: "failures"}, `{"redrivePermission":"byQueue","sourceQueueArns":["arn:aws:sqs:eu-central-1:123456789012:orders"]}`, "1209600"},
		"of another": {
			SQSDeadEnd{SQSIdentity: sqsHere, Role: RoleDeadLetter, SourceQueue: "invoices", SQSQueueSettings: SQSQueueSettings{Retention: 5 * Day}},
			`{"redrivePermission":"byQueue","sourceQueueArns":["arn:aws:sqs:eu-central-1:123456789012:invoices"]}`, "432000",
		},
		"parked": {SQSDeadEnd{SQSIdentity: SQSIdentity{Topic: "orders"}, Role: RoleParked}, `{"redrivePermission":"denyAll"}`, "1209600"},
	} {
		got, err := tc.end.Attributes()
		if err != nil || got[AttrRedriveAllowPolicy] != tc.allow || got[AttrRetention] != tc.retain || got[AttrRedrivePolicy] != "" {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	_, err := SQSDeadEnd{SQSIdentity: SQSIdentity{Topic: "orders"}, Role: RoleDeadLetter}.Attributes()
	refused(t, err, `"orders-dlq"`, "account id is not known")
}

func TestDiffSQSAttributes(t *testing.T) {
	t.Parallel()
	spec := sqsPlain(t)
	spec.Policy = `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":{"AWS":"123456789012"},"Action":"sqs:SendMessage","Resource":"*"}}`
	want, err := spec.Attributes()
	if err != nil {
		t.Fatal(err)
	}
	kms := maps.Clone(want)
	maps.Copy(kms, SQSAttributes{AttrManagedSSE: "false", AttrKMSKey: "k", AttrKMSReuse: "300"})
	fifo, err := sqsFIFO(t).Attributes()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		want    SQSAttributes
		changes SQSAttributes
		keys    string
		repair  SQSAttributes
		says    string
	}{
		"nothing": {want, nil, "", SQSAttributes{}, ""},
		"live only": {want, SQSAttributes{
			"QueueArn": "arn:aws:sqs:eu-central-1:123456789012:orders", "ApproximateNumberOfMessages": "5", "CreatedTimestamp": "1700000000",
		}, "", SQSAttributes{}, ""},
		"another text": {want, SQSAttributes{
			AttrVisibilityTimeout: "030", AttrRedrivePolicy: `{"maxReceiveCount":"11", "deadLetterTargetArn":"arn:aws:sqs:eu-central-1:123456789012:orders-dlq"}`,
			AttrPolicy:             `{"Statement":[{"Resource":["*"],"Action":["SQS:SendMessage"],"Principal":{"AWS":["arn:aws:iam::123456789012:root"]},"Effect":"Allow"}],"Version":"2012-10-17"}`,
			AttrRedriveAllowPolicy: `{"redrivePermission":"allowAll"}`, AttrKMSReuse: "600",
		}, "", SQSAttributes{}, ""},
		"number":         {want, SQSAttributes{AttrVisibilityTimeout: "31"}, AttrVisibilityTimeout, SQSAttributes{AttrVisibilityTimeout: "30"}, "after 31s instead of 30s"},
		"default":        {want, SQSAttributes{AttrRetention: ""}, "", SQSAttributes{}, ""},
		"no number":      {want, SQSAttributes{AttrRetention: "x"}, AttrRetention, SQSAttributes{AttrRetention: "345600"}, "x after it was sent instead of 4d"},
		"count":          {want, SQSAttributes{AttrRedrivePolicy: strings.Replace(want[AttrRedrivePolicy], "11", "10", 1)}, AttrRedrivePolicy, SQSAttributes{AttrRedrivePolicy: want[AttrRedrivePolicy]}, `"maxReceiveCount":10`},
		"redrive gone":   {want, SQSAttributes{AttrRedrivePolicy: ""}, AttrRedrivePolicy, SQSAttributes{AttrRedrivePolicy: want[AttrRedrivePolicy]}, "until their retention ends"},
		"redrive, text":  {want, SQSAttributes{AttrRedrivePolicy: "{"}, AttrRedrivePolicy, SQSAttributes{AttrRedrivePolicy: want[AttrRedrivePolicy]}, "instead of"},
		"allow":          {want, SQSAttributes{AttrRedriveAllowPolicy: `{"redrivePermission":"denyAll"}`}, AttrRedriveAllowPolicy, SQSAttributes{AttrRedriveAllowPolicy: ""}, "only some queues"},
		"policy":         {want, SQSAttributes{AttrPolicy: ""}, AttrPolicy, SQSAttributes{AttrPolicy: want.Managed()[AttrPolicy]}, "are refused"},
		"policy, broken": {want, SQSAttributes{AttrPolicy: "nope"}, AttrPolicy, SQSAttributes{AttrPolicy: want.Managed()[AttrPolicy]}, "something else"},
		"to a key": {
			want,
			SQSAttributes{AttrManagedSSE: "", AttrKMSKey: "k", AttrKMSReuse: "600"},
			AttrKMSKey + " " + AttrManagedSSE,
			SQSAttributes{AttrManagedSSE: "true", AttrKMSKey: ""},
			"with the key k",
		},
		"not encrypted": {want, SQSAttributes{AttrManagedSSE: "false"}, AttrManagedSSE, SQSAttributes{AttrManagedSSE: "true", AttrKMSKey: ""}, "is false instead of true"},
		"no key":        {kms, SQSAttributes{AttrKMSKey: "", AttrManagedSSE: "true", AttrKMSReuse: ""}, AttrKMSKey + " " + AttrManagedSSE, SQSAttributes{AttrManagedSSE: "false", AttrKMSKey: "k", AttrKMSReuse: "300"}, "not encrypted with the key k"},
		"another key":   {kms, SQSAttributes{AttrKMSKey: "other"}, AttrKMSKey, SQSAttributes{AttrManagedSSE: "false", AttrKMSKey: "k", AttrKMSReuse: "300"}, "key other instead of k"},
		"reuse":         {kms, SQSAttributes{AttrKMSReuse: "600"}, AttrKMSReuse, SQSAttributes{AttrManagedSSE: "false", AttrKMSKey: "k", AttrKMSReuse: "300"}, "10m instead of 5m"},
		"not FIFO":      {fifo, SQSAttributes{AttrFIFO: "", AttrContentBasedDedup: "", AttrDeduplicationScope: "", AttrFIFOThroughputLimit: ""}, AttrFIFO, SQSAttributes{}, "this is a standard queue"},
		"FIFO":          {want, SQSAttributes{AttrFIFO: "true", AttrDeduplicationScope: "messageGroup"}, AttrFIFO, SQSAttributes{}, "this is a FIFO queue"},
		"scope":         {fifo, SQSAttributes{AttrDeduplicationScope: "messageGroup"}, AttrDeduplicationScope, SQSAttributes{AttrDeduplicationScope: "queue"}, "per messageGroup instead of queue"},
		"two": {
			want,
			SQSAttributes{AttrDelay: "5", AttrMaxMessageSize: "2048"},
			AttrDelay + " " + AttrMaxMessageSize,
			SQSAttributes{AttrDelay: "0", AttrMaxMessageSize: "1048576"},
			"5s after it was sent",
		},
	} {
		have := tc.want.Set()
		maps.Copy(have, tc.changes)
		before := maps.Clone(have)
		diffs := DiffSQSAttributes(tc.want, have)
		var keys, texts []string
		for _, d := range diffs {
			keys, texts = append(keys, d.Key), append(texts, d.Explanation)
			if d.Want == d.Have || d.Explanation == "" || strings.ContainsAny(d.Explanation, "{}") && !strings.Contains(d.Explanation, `{"`) {
				t.Errorf("%s: %+v", name, d)
			}
		}
		if strings.Join(keys, " ") != tc.keys || !strings.Contains(strings.Join(texts, "\n"), tc.says) {
			t.Errorf("%s: differences %v: %q", name, keys, texts)
		}
		repair := tc.want.Repair(have)
		if !reflect.DeepEqual(repair, tc.repair) {
			t.Errorf("%s: repaired by %v, want %v", name, repair, tc.repair)
		}
		if !reflect.DeepEqual(have, before) {
			t.Errorf("%s: the live attributes were changed", name)
		}
		if slices.Contains(keys, AttrFIFO) {
			continue // cannot be repaired
		}
		maps.Copy(have, repair)
		if left := DiffSQSAttributes(tc.want, have); len(left) > 0 {
			t.Errorf("%s: still different after the repair: %v", name, left)
		}
	}
}

func TestSQSDifferenceString(t *testing.T) {
	t.Parallel()
	diffs := DiffSQSAttributes(SQSAttributes{}, SQSAttributes{AttrKMSKey: "k", AttrManagedSSE: "true"})
	const want = "KmsMasterKeyId: want absent, live k: messages are encrypted with the key k: producers and consumers need permission on it"
	if len(diffs) != 1 || diffs[0].String() != want {
		t.Errorf("%v", diffs)
	}
}

// Two queues differ exactly where what is managed of them does, and no two attributes have the same explanation.
func TestSQSManaged(t *testing.T) {
	t.Parallel()
	for _, tc := range sqsCases(t) {
		want, err := tc.spec.Attributes()
		if err != nil {
			t.Fatal(err)
		}
		managed := want.Managed()
		if !reflect.DeepEqual(managed, managed.Managed()) || !reflect.DeepEqual(managed, want.Set().Managed()) || len(DiffSQSAttributes(want, managed)) > 0 {
			t.Errorf("%s: %v has no one form: %v", tc.name, want, managed)
		}
		for name, value := range managed {
			if value == "" {
				t.Errorf("%s: %s is empty", tc.name, name)
			}
		}
	}
	for name := range sqsDefaults {
		if sqsEffects[name].changed == "" {
			t.Errorf("%s has no explanation", name)
		}
	}
}

func TestSQSSettingsOf(t *testing.T) {
	t.Parallel()
	for _, tc := range sqsCases(t) {
		attributes, err := tc.spec.Attributes()
		if err != nil {
			t.Fatal(err)
		}
		read := tc.spec
		read.SQSQueueSettings = SQSSettingsOf(attributes.Set(), RoleWork)
		again, err := read.Attributes()
		if err != nil || !reflect.DeepEqual(again, attributes) {
			t.Errorf("%s: settings %+v give %v, %v", tc.name, read.SQSQueueSettings, again, err)
		}
		for _, end := range tc.ends {
			attributes, err := end.Attributes()
			if err != nil {
				t.Fatal(err)
			}
			if got := SQSSettingsOf(attributes.Set(), end.Role); !reflect.DeepEqual(got, SQSQueueSettings{}) {
				t.Errorf("%s: the settings of %q are %+v", tc.name, end.QueueName(), got)
			}
		}
	}
	got := SQSSettingsOf(SQSAttributes{AttrRetention: "345600", AttrManagedSSE: "false"}, RoleDeadLetter)
	if want := (SQSQueueSettings{Retention: DefaultRetention, SSE: SSENone}); !reflect.DeepEqual(got, want) {
		t.Errorf("a dead-letter queue of AWS's defaults has the settings %+v", got)
	}
}

// What is not configured is AWS's default, and that depends on where and when the queue was made.
func TestSQSMessageSizeByDefault(t *testing.T) {
	t.Parallel()
	s := sqsPlain(t)
	for _, tc := range []struct {
		size       int
		have, want string // want is what is set
	}{
		{0, "1048576", ""},
		{0, "262144", ""},
		{0, "", ""},
		{0, "2048", "1048576"},
		{MaxMessageSize, "262144", "1048576"},
		{OldMaxMessageSize, "1048576", "262144"},
		{OldMaxMessageSize, "262144", ""},
	} {
		s.MaxMessageSize = tc.size
		want, err := s.Attributes()
		if err != nil {
			t.Fatal(err)
		}
		if _, sent := want.Set()[AttrMaxMessageSize]; sent != (tc.size != 0) {
			t.Errorf("%d: the queue is made with %v", tc.size, want.Set())
		}
		have := want.Set()
		have[AttrMaxMessageSize] = tc.have
		if got := want.Repair(have)[AttrMaxMessageSize]; got != tc.want || (got == "") != (want.ManagedOn(have)[AttrMaxMessageSize] == have.Managed()[AttrMaxMessageSize]) {
			t.Errorf("%d on a queue of %s: set to %q, shown as %v", tc.size, tc.have, got, want.ManagedOn(have))
		}
		if read := SQSSettingsOf(have, RoleWork).MaxMessageSize; tc.size == 0 && tc.want == "" && read != 0 {
			t.Errorf("a queue of %s is read as %d", tc.have, read)
		}
	}
}

// A topic that is imported has a retry policy that it can have.
func TestSQSIdleWait(t *testing.T) {
	t.Parallel()
	for _, fifo := range []bool{false, true} {
		for _, visibility := range []string{"0", "30", "60", "39600", "43200"} {
			for _, retention := range []string{"3600", "345600", "1209600"} {
				for _, retries := range []int{1, 4, 10, 999} {
					s := sqsPlain(t)
					if s.FIFO = fifo; fifo {
						s.DeadLetterQueue = "orders-dlq.fifo"
					}
					live := SQSAttributes{AttrVisibilityTimeout: visibility, AttrRetention: retention, AttrFIFO: map[bool]string{true: "true"}[fifo]}
					wait := live.IdleWait(retries, DefaultJitter)
					s.Retention, s.Retry = live.Retention(), RetryPolicy{MaxRetries: retries, Delays: []time.Duration{wait}, Jitter: DefaultJitter}
					if err := s.Validate(); err != nil {
						t.Errorf("FIFO %t, %ss, %d retries: %v", fifo, visibility, retries, err)
					}
					if usual := max(live.VisibilityTimeout(), DefaultVisibilityTimeout); retries == 1 && usual <= time.Minute && wait != usual {
						t.Errorf("FIFO %t, %ss: waits %s", fifo, visibility, wait)
					}
				}
			}
		}
	}
}

func TestSQSAttributesRead(t *testing.T) {
	t.Parallel()
	a := SQSAttributes{
		"QueueArn": "arn", "ApproximateNumberOfMessages": "1", "ApproximateNumberOfMessagesNotVisible": "2", "ApproximateNumberOfMessagesDelayed": "3",
		AttrVisibilityTimeout: "60", AttrDelay: "x", AttrRetention: "99999999999999999999",
	}
	visible, inFlight, delayed := a.Messages()
	if a.ARN() != "arn" || visible != 1 || inFlight != 2 || delayed != 3 || a.VisibilityTimeout() != time.Minute || a.Delay() != 0 || a.Retention() != 0 || a.MaxMessageSize() != MaxMessageSize || a.FIFO() {
		t.Errorf("%v is read as %d, %d, %d, %s", a, visible, inFlight, delayed, a.VisibilityTimeout())
	}
	for text, ok := range map[string]bool{
		`{"deadLetterTargetArn":"a","maxReceiveCount":5}`: true, `{"deadLetterTargetArn":"a","maxReceiveCount":"5"}`: true,
		"": false, "{": false, "[]": false, `{"deadLetterTargetArn":"a"}`: false, `{"maxReceiveCount":5}`: false, `{"deadLetterTargetArn":"a","maxReceiveCount":0}`: false,
		`{"deadLetterTargetArn":"a","maxReceiveCount":1001}`: false, `{"deadLetterTargetArn":"a","maxReceiveCount":1.5}`: false,
	} {
		arn, count, got := SQSAttributes{AttrRedrivePolicy: text}.RedriveTarget()
		if got != ok || ok && (arn != "a" || count != 5) {
			t.Errorf("%q is read as %q, %d, %t", text, arn, count, got)
		}
	}
}

// Whose messages a dead-letter queue takes is read back from what it was given, and from nothing that means something else.
func TestSourceQueueIn(t *testing.T) {
	t.Parallel()
	dead := SQSDeadEnd{SQSIdentity: sqsHere, Role: RoleDeadLetter}
	parked := SQSDeadEnd{SQSIdentity: sqsHere, Role: RoleParked}
	of := func(sources ...string) string {
		return CanonicalJSON(map[string]any{redrivePermission: "byQueue", redriveSources: sources})
	}
	for name, c := range map[string]struct {
		end          SQSDeadEnd
		policy, want string
	}{
		"another queue":       {dead, of(sqsHere.ARN("invoices")), "invoices"},
		"its topic's":         {dead, of(sqsHere.ARN("orders")), ""},
		"two queues":          {dead, of(sqsHere.ARN("invoices"), sqsHere.ARN("orders")), ""},
		"in another region":   {dead, of("arn:aws:sqs:us-east-1:123456789012:invoices"), ""},
		"in another account":  {dead, of("arn:aws:sqs:eu-central-1:210987654321:invoices"), ""},
		"everybody":           {dead, `{"redrivePermission":"allowAll"}`, ""},
		"nothing":             {dead, "", ""},
		"no policy":           {dead, "{", ""},
		"not an ARN":          {dead, of("invoices"), ""},
		"of a parked queue":   {parked, of(sqsHere.ARN("invoices")), ""},
		"denied, with a list": {dead, `{"redrivePermission":"denyAll","sourceQueueArns":["` + sqsHere.ARN("invoices") + `"]}`, ""},
	} {
		if got := c.end.SourceQueueIn(SQSAttributes{AttrRedriveAllowPolicy: c.policy}); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	end := dead
	end.SourceQueue = "invoices"
	attributes, err := end.Attributes()
	if err != nil {
		t.Fatal(err)
	}
	if got := dead.SourceQueueIn(attributes); got != "invoices" {
		t.Errorf("of what it was given itself: %q", got)
	}
}
