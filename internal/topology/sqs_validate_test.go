package topology

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSQSSpecRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change     func(*SQSSpec)
		essentials []string
	}{
		"name":            {func(s *SQSSpec) { s.Topic = "a.b" }, []string{`"a.b"`}},
		"no dead end":     {func(s *SQSSpec) { s.DeadLetterQueue = "" }, []string{"no dead-letter queue", `"orders-dlq"`, "allow_message_loss = true"}},
		"via":             {func(s *SQSSpec) { s.DeadLetterVia = "pigeon" }, []string{`"pigeon"`, `"redrive" or "send"`}},
		"redrive nowhere": {func(s *SQSSpec) { s.DeadLetterQueue, s.AllowMessageLoss, s.DeadLetterVia = "", true, ViaRedrive }, []string{`dead_letter_via = "redrive"`, "no dead-letter queue"}},
		"send nowhere":    {func(s *SQSSpec) { s.DeadLetterQueue, s.DeadLetterVia = "", ViaSend }, []string{`dead_letter_via = "send"`, "set dead_letter_queue"}},
		"itself":          {func(s *SQSSpec) { s.DeadLetterQueue = "orders" }, []string{`"orders"`, "itself uses this name"}},
		"migrating":       {func(s *SQSSpec) { s.DeadLetterQueue = "orders-migrating" }, []string{"itself uses this name"}},
		"both":            {func(s *SQSSpec) { s.DeadLetterQueue, s.ParkedQueue = "bad", "bad" }, []string{`"bad" is both`}},
		"dots":            {func(s *SQSSpec) { s.DeadLetterQueue = "orders.dlq" }, []string{"dead-letter queue", `a "."`}},
		"long":            {func(s *SQSSpec) { s.DeadLetterQueue = strings.Repeat("x", 81) }, []string{"81 characters", "shorten it by 1"}},
		"standard to FIFO": {
			func(s *SQSSpec) { s.DeadLetterQueue = "orders-dlq.fifo" },
			[]string{`"orders-dlq.fifo"`, "one type only", "fifo = true"},
		},
		"FIFO to standard": {func(s *SQSSpec) { s.FIFO = true }, []string{`"orders-dlq"`, `call it "orders-dlq.fifo"`}},
		"parked, shove":    {func(s *SQSSpec) { s.Convention, s.ParkedQueue = Shove, "bad" }, []string{"shove", "no parked queue"}},
		"parked, type":     {func(s *SQSSpec) { s.ParkedQueue = "bad.fifo" }, []string{`parked queue "bad.fifo"`}},
		"park nowhere":     {func(s *SQSSpec) { s.Park = ParkPublish }, []string{`park = "publish"`, "no parked queue"}},
		"park":             {func(s *SQSSpec) { s.Park = "keep" }, []string{`park "keep"`}},

		"handler": {
			func(s *SQSSpec) { s.HandlerTimeout = time.Minute },
			[]string{"visibility_timeout 30s", "handler_timeout 1m", "set visibility_timeout to 1m or more"},
		},
		"handler, rounded":  {func(s *SQSSpec) { s.HandlerTimeout = 30500 * time.Millisecond }, []string{"to 31s or more"}},
		"handler, too long": {func(s *SQSSpec) { s.HandlerTimeout = 12 * time.Hour }, []string{"handler_timeout 12h", "11h59m"}},
		"handler, negative": {func(s *SQSSpec) { s.HandlerTimeout = -time.Second }, []string{"handler_timeout -1s"}},

		"strategy":       {func(s *SQSSpec) { s.Retry.Strategy = Republish }, []string{`"republish"`, `"in_place"`, "invisible"}},
		"hold_from":      {func(s *SQSSpec) { s.Retry.HoldFrom = time.Second }, []string{"hold_from", "leave them out"}},
		"negative":       {func(s *SQSSpec) { s.Retry.MaxRetries = -1 }, []string{"retry.max_retries -1"}},
		"no delays":      {func(s *SQSSpec) { s.Retry.Delays = nil }, []string{`"orders" retries 10 times`, "retry.delays"}},
		"jitter":         {func(s *SQSSpec) { s.Retry.Jitter = 1 }, []string{"retry.jitter 1"}},
		"jitter, NaN":    {func(s *SQSSpec) { s.Retry.Jitter = math.NaN() }, []string{"retry.jitter NaN"}},
		"give up":        {func(s *SQSSpec) { s.Retry.GiveUpAfter = -1 }, []string{"retry.give_up_after"}},
		"give up late":   {func(s *SQSSpec) { s.Retry.GiveUpAfter = 4 * Day }, []string{"retry.give_up_after 4d", "retention of 4d", "silently", "up to 14d"}},
		"order":          {func(s *SQSSpec) { s.Retry.Delays = durations(t, "5s 1s") }, []string{"retry.delays", "shortest first"}},
		"milliseconds":   {func(s *SQSSpec) { s.Retry.Delays = durations(t, "500ms") }, []string{"delay 500ms", "whole seconds", "use 1s"}},
		"over 12 hours":  {func(s *SQSSpec) { s.Retry = RetryPolicy{MaxRetries: 1, Delays: durations(t, "13h"), Jitter: 0.2} }, []string{"delay 13h", "12h", "11h59m", "up to 15h36m; shorten it"}},
		"just 12 hours":  {func(s *SQSSpec) { s.Retry = RetryPolicy{MaxRetries: 1, Delays: durations(t, "12h")} }, []string{"delay 12h", "11h59m may be used; shorten it"}},
		"with jitter":    {func(s *SQSSpec) { s.Retry = RetryPolicy{MaxRetries: 1, Delays: durations(t, "11h"), Jitter: 0.2} }, []string{"delay 11h", "up to 13h12m", "or lower retry.jitter"}},
		"receives":       {func(s *SQSSpec) { s.Retry.MaxRetries = 1000; s.Retry.Delays = durations(t, "1s") }, []string{"retry.max_retries 1000", "at most 1000", "to 999 or less"}},
		"receives, most": {func(s *SQSSpec) { s.Retry.MaxRetries = math.MaxInt; s.Retry.Delays = durations(t, "1s") }, []string{"to 999 or less"}},
		"receives, send": {func(s *SQSSpec) {
			s.Retry.MaxRetries, s.DeadLetterVia, s.Retry.Delays = 991, ViaSend, durations(t, "1s")
		}, []string{"retry.max_retries 991", `"send"`, "10 for crashes", "to 990 or less"}},

		"retention": {
			func(s *SQSSpec) { s.Retry = RetryPolicy{MaxRetries: 10, Delays: durations(t, "11h")} },
			[]string{`topic "orders"`, "up to 4d14h", "for 4d", "silently", "raise retention to 4d14h1m or more"},
		},
		"retention, jitter": {func(s *SQSSpec) { s.Retry = RetryPolicy{MaxRetries: 10, Delays: durations(t, "9h"), Jitter: 0.2} }, []string{"up to 4d12h", "4d12h1m or more"}},
		"retention, handlers": {func(s *SQSSpec) {
			s.Retry = RetryPolicy{MaxRetries: 10, Delays: durations(t, "9h")}
			s.HandlerTimeout, s.VisibilityTimeout = time.Hour, time.Hour
		}, []string{"up to 4d5h", ", every handler's full timeout included"}},
		"retention, delay": {func(s *SQSSpec) {
			s.Retention, s.Delay, s.Retry = 2*time.Minute, time.Minute, RetryPolicy{MaxRetries: 1, Delays: durations(t, "1m")}
		}, []string{"up to 2m", "raise retention to 3m"}},
		"retention, none": {func(s *SQSSpec) { s.Retry = RetryPolicy{MaxRetries: 40, Delays: durations(t, "11h")} }, []string{"no retention that SQS has is long enough"}},
		"retention, huge": {func(s *SQSSpec) {
			s.DeadLetterQueue, s.AllowMessageLoss = "", true
			s.Retry = RetryPolicy{MaxRetries: math.MaxInt, Delays: durations(t, "11h")}
		}, []string{"no retention that SQS has is long enough"}},
		"FIFO, all in one": {func(s *SQSSpec) {
			s.FIFO, s.DeadLetterQueue = true, "orders-dlq.fifo"
			s.Retry = RetryPolicy{MaxRetries: 20, Delays: durations(t, "30m"), Jitter: 0.2}
		}, []string{"retry.max_retries 20", "one receive", "up to 12h together", "11h59m may be used", "give_up_after"}},
		"dead-letter retention": {func(s *SQSSpec) { s.DeadLetterRetention = 3 * Day }, []string{`"orders-dlq" keeps messages for 3d`, "for 4d", "first sent", "to 4d or more", "14d is its default"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sqsPlain(t)
			tc.change(&s)
			refused(t, s.Validate(), tc.essentials...)
			if _, err := s.Manifest(); err == nil {
				t.Error("the manifest of a refused topic is computed")
			}
		})
	}
}

func TestSQSSpecAccepted(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*SQSSpec){
		"plain":         func(*SQSSpec) {},
		"most receives": func(s *SQSSpec) { s.Retry.MaxRetries, s.Retry.Delays = 999, durations(t, "1s") },
		"most, sent": func(s *SQSSpec) {
			s.Retry.MaxRetries, s.DeadLetterVia, s.Retry.Delays = 990, ViaSend, durations(t, "1s")
		},
		"longest delay": func(s *SQSSpec) { s.Retry = RetryPolicy{MaxRetries: 1, Delays: []time.Duration{SQSHoldBound}} },
		"own name":      func(s *SQSSpec) { s.DeadLetterQueue = "all-failures" },
		"another's":     func(s *SQSSpec) { s.DeadLetterQueue = "invoices-dlq" },
		"loss":          func(s *SQSSpec) { s.DeadLetterQueue, s.AllowMessageLoss = "", true },
		"loss, many": func(s *SQSSpec) {
			s.DeadLetterQueue, s.AllowMessageLoss, s.Retry.MaxRetries, s.Retry.Delays = "", true, 5000, durations(t, "1s")
		},
		"no retries": func(s *SQSSpec) { s.Retry = RetryPolicy{} },
		"handler":    func(s *SQSSpec) { s.HandlerTimeout = DefaultVisibilityTimeout },
		"given up in time": func(s *SQSSpec) {
			s.Retry = RetryPolicy{MaxRetries: 40, Delays: durations(t, "11h"), GiveUpAfter: 3 * Day}
		},
		"long retention": func(s *SQSSpec) {
			s.Retention, s.Retry = MaxRetention, RetryPolicy{MaxRetries: 10, Delays: durations(t, "11h")}
		},
		"FIFO, shorter dead": func(s *SQSSpec) { s.FIFO, s.DeadLetterQueue, s.DeadLetterRetention = true, "orders-dlq.fifo", Day },
		"FIFO, given up": func(s *SQSSpec) {
			s.FIFO, s.DeadLetterQueue = true, "orders-dlq.fifo"
			s.Retry = RetryPolicy{MaxRetries: 20, Delays: durations(t, "30m"), Jitter: 0.2, GiveUpAfter: 6 * time.Hour}
		},
		"same retention": func(s *SQSSpec) { s.DeadLetterRetention = DefaultRetention },
		"park rejects":   func(s *SQSSpec) { s.ParkedQueue, s.Park, s.DeadLetterVia = "bad", ParkReject, ViaSend },
		"not placed":     func(s *SQSSpec) { s.Region, s.Account = "", "" },
	} {
		s := sqsPlain(t)
		change(&s)
		if err := s.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSQSSettingsRefused(t *testing.T) {
	t.Parallel()
	many := map[string]string{}
	for i := range MaxQueueTags + 1 {
		many[fmt.Sprint(i)] = ""
	}
	fifo := func(q SQSQueueSettings) SQSDeadEnd {
		return SQSDeadEnd{SQSIdentity: SQSIdentity{Topic: "orders", FIFO: true}, Role: RoleDeadLetter, SQSQueueSettings: q}
	}
	standard := func(q SQSQueueSettings) SQSDeadEnd {
		return SQSDeadEnd{SQSIdentity: SQSIdentity{Topic: "orders"}, Role: RoleParked, SQSQueueSettings: q}
	}
	for name, tc := range map[string]struct {
		end        SQSDeadEnd
		essentials []string
	}{
		"visibility":         {standard(SQSQueueSettings{VisibilityTimeout: 12*time.Hour + time.Second}), []string{"visibility_timeout 12h1s", "0s to 12h"}},
		"visibility, below":  {standard(SQSQueueSettings{VisibilityTimeout: -time.Second}), []string{"visibility_timeout -1s"}},
		"visibility, ms":     {standard(SQSQueueSettings{VisibilityTimeout: 1500 * time.Millisecond}), []string{"visibility_timeout 1.5s", "whole seconds", "use 2s"}},
		"retention":          {standard(SQSQueueSettings{Retention: 59 * time.Second}), []string{"retention 59s", "1m to 14d"}},
		"retention, above":   {standard(SQSQueueSettings{Retention: 15 * Day}), []string{"retention 15d", "1m to 14d"}},
		"delay":              {standard(SQSQueueSettings{Delay: 901 * time.Second}), []string{"delay 15m1s", "0s to 15m"}},
		"receive wait":       {standard(SQSQueueSettings{ReceiveWait: 21 * time.Second}), []string{"receive_wait 21s", "0s to 20s"}},
		"size":               {standard(SQSQueueSettings{MaxMessageSize: 1023}), []string{"max_message_size 1023", "1024 to 1048576"}},
		"size, above":        {standard(SQSQueueSettings{MaxMessageSize: 1048577}), []string{"max_message_size 1048577"}},
		"encryption":         {standard(SQSQueueSettings{SSE: "rot13"}), []string{`encryption "rot13"`, `"sqs", "kms", "none"`}},
		"no key":             {standard(SQSQueueSettings{SSE: SSEKMS}), []string{"names no key", "kms_key", `"alias/aws/sqs"`}},
		"key":                {standard(SQSQueueSettings{SSE: SSENone, KMSKey: "k"}), []string{`kms_key "k"`, `"none"`}},
		"reuse":              {standard(SQSQueueSettings{KMSDataKeyReuse: time.Hour}), []string{"kms_data_key_reuse 1h", "without kms_key"}},
		"reuse, below":       {standard(SQSQueueSettings{KMSKey: "k", KMSDataKeyReuse: 59 * time.Second}), []string{"kms_data_key_reuse 59s", "1m to 1d"}},
		"reuse, above":       {standard(SQSQueueSettings{KMSKey: "k", KMSDataKeyReuse: Day + time.Second}), []string{"kms_data_key_reuse 1d1s"}},
		"deduplication":      {standard(SQSQueueSettings{ContentBasedDeduplication: true}), []string{"content_based_deduplication", "only FIFO"}},
		"scope":              {standard(SQSQueueSettings{DeduplicationScope: ScopeQueue}), []string{"deduplication_scope", "only FIFO"}},
		"limit":              {standard(SQSQueueSettings{ThroughputLimit: LimitPerQueue}), []string{"throughput_limit", "fifo = true"}},
		"fifo, scope":        {fifo(SQSQueueSettings{DeduplicationScope: "x"}), []string{`deduplication_scope "x"`, `"queue", "messageGroup"`}},
		"fifo, limit":        {fifo(SQSQueueSettings{ThroughputLimit: "x"}), []string{`throughput_limit "x"`, `"perQueue", "perMessageGroupId"`}},
		"high throughput":    {fifo(SQSQueueSettings{ThroughputLimit: LimitPerGroupID}), []string{`"perMessageGroupId"`, `deduplication_scope = "messageGroup"`}},
		"policy":             {standard(SQSQueueSettings{Policy: "{"}), []string{"policy", "not JSON"}},
		"many tags":          {standard(SQSQueueSettings{Tags: many}), []string{"there are 51", "at most 50", "leave 1 out"}},
		"aws tag":            {standard(SQSQueueSettings{Tags: map[string]string{"AWS:x": ""}}), []string{`"AWS:x"`, "reserved"}},
		"empty tag":          {standard(SQSQueueSettings{Tags: map[string]string{"": ""}}), []string{"empty key"}},
		"long tag":           {standard(SQSQueueSettings{Tags: map[string]string{strings.Repeat("ü", 129): ""}}), []string{"129 characters", "allows 128"}},
		"long value":         {standard(SQSQueueSettings{Tags: map[string]string{"k": strings.Repeat("x", 257)}}), []string{"257 characters", "allows 256"}},
		"character":          {standard(SQSQueueSettings{Tags: map[string]string{"k": "a;b"}}), []string{`"a;b"`, "letters, digits"}},
		"role":               {SQSDeadEnd{SQSIdentity: sqsHere, Role: RoleWork}, []string{`role "work"`}},
		"name":               {SQSDeadEnd{SQSIdentity: sqsHere, Role: RoleDeadLetter, Name: "orders"}, []string{"itself uses this name"}},
		"no parked queue":    {SQSDeadEnd{SQSIdentity: SQSIdentity{Topic: "o", Convention: Shove}, Role: RoleParked}, []string{"parked queue", "shove"}},
		"source of a parked": {SQSDeadEnd{SQSIdentity: sqsHere, Role: RoleParked, SourceQueue: "x"}, []string{`source_queue "x"`, "leave it out"}},
		"source, itself":     {SQSDeadEnd{SQSIdentity: sqsHere, Role: RoleDeadLetter, SourceQueue: "orders-dlq"}, []string{"itself"}},
		"source, other type": {SQSDeadEnd{SQSIdentity: sqsHere, Role: RoleDeadLetter, SourceQueue: "x.fifo"}, []string{`source_queue "x.fifo"`}},
		"topic":              {SQSDeadEnd{SQSIdentity: SQSIdentity{Topic: "x-dlq"}, Role: RoleDeadLetter}, []string{`"x-dlq"`}},
		"two at a time":      {fifo(SQSQueueSettings{SSE: "x", DeduplicationScope: "y"}), []string{`"x"`, `"y"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused(t, tc.end.Validate(), tc.essentials...)
			if _, err := tc.end.Attributes(); err == nil {
				t.Error("the attributes of a refused queue are computed")
			}
		})
	}
}

func TestSQSWarnings(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*SQSSpec)
		ids    string
		says   []string
	}{
		"plain":           {func(*SQSSpec) {}, "", nil},
		"few retries":     {func(s *SQSSpec) { s.Retry.MaxRetries = 2 }, WarnFewReceives, []string{`"orders"`, "received 3 times", "retry.max_retries = 2", "Defer"}},
		"no retries":      {func(s *SQSSpec) { s.Retry = RetryPolicy{} }, WarnFewReceives, []string{"received 1 times"}},
		"few, FIFO":       {func(s *SQSSpec) { s.FIFO, s.DeadLetterQueue, s.Retry.MaxRetries = true, "orders-dlq.fifo", 2 }, WarnFewReceives, []string{"also one after a crash"}},
		"nothing to lose": {func(s *SQSSpec) { s.Retry.MaxRetries, s.DeadLetterQueue, s.AllowMessageLoss = 2, "", true }, "", nil},
		"long waits":      {func(s *SQSSpec) { s.Retry.Delays, s.Retry.Jitter = durations(t, "10m"), 0 }, WarnInFlight, []string{"up to 1h40m", "120000", "From 20 failing messages a second"}},
		"very long waits": {func(s *SQSSpec) { s.Retry.Delays, s.Retry.Jitter = durations(t, "9h"), 0 }, WarnInFlight, []string{"up to 3d18h", "From 0.4 failing messages"}},
		"dead soon":       {func(s *SQSSpec) { s.Retry.Delays, s.Retry.Jitter, s.DeadLetterRetention = durations(t, "9h"), 0, 4*Day }, WarnInFlight + " " + WarnShortDeadLife, []string{"is there for 6h"}},
		"dead soon, FIFO": {func(s *SQSSpec) {
			s.FIFO, s.DeadLetterQueue, s.DeadLetterRetention = true, "orders-dlq.fifo", time.Hour
		}, "", nil},
		"dead late enough": {func(s *SQSSpec) { s.DeadLetterRetention = MaxRetention }, "", nil},
	} {
		s := sqsPlain(t)
		tc.change(&s)
		if err := s.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var ids, texts []string
		for _, w := range s.Warnings() {
			ids, texts = append(ids, w.ID), append(texts, w.Detail)
			if !slices.Contains(SQSWarningIDs(), w.ID) {
				t.Errorf("%s: warning %q is not listed", name, w.ID)
			}
			if w.Summary == "" || strings.HasSuffix(w.Summary, ".") || strings.Contains(w.Summary, "orders") || !strings.HasSuffix(w.Detail, ".") {
				t.Errorf("%s: %q: %q", name, w.Summary, w.Detail)
			}
		}
		if strings.Join(ids, " ") != tc.ids {
			t.Errorf("%s: warnings %v, want %s", name, ids, tc.ids)
		}
		for _, part := range tc.says {
			if !strings.Contains(strings.Join(texts, "\n"), part) {
				t.Errorf("%s: %q does not say %q", name, texts, part)
			}
		}
	}
}
