package topology

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// oddNames may be topics under every convention.
var oddNames = []string{
	"orders", "orders@eu", "orders/eu", "50%", "orders#1", "what?", "a;b", "with space", " ", "tab\there", `"quoted"`, "it's",
	"bestellungen-größer", "注文", "🛒", "a`b", "[x](y)", "{{x}}", "a|b", "^a$", `back\slash`, "Amq.x", "...", "-dlq", ".dlq",
	"x-dlq-x", "x-hold-5s-x", "x-hold-s", "x-hold-5", "\u2028", "\ufffd", "a\x7fb", strings.Repeat("x", 200),
}

func TestNames(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		id                                 Identity
		deadLetter, parked, retry, migrate string
		holds                              string // of the delays 500ms 1s 1500ms 30s 90s 5m 2h 1d
	}{
		{
			Identity{Topic: "t"},
			"t-dlq", "t-parked", "t-retry", "t-migrating",
			"t-hold-500ms t-hold-1s t-hold-1500ms t-hold-30s t-hold-90s t-hold-300s t-hold-7200s t-hold-86400s",
		},
		{
			Identity{Topic: "t", Convention: Shove},
			"t-dlq", "", "", "t-migrating",
			"- t-hold-1s - t-hold-30s t-hold-90s t-hold-300s t-hold-7200s t-hold-86400s",
		},
		{
			Identity{Topic: "t", Convention: Shove, ConsumerGroup: "g"},
			"t-g-dlq", "", "", "t-migrating",
			"- t-g-hold-1s - t-g-hold-30s t-g-hold-90s t-g-hold-300s t-g-hold-7200s t-g-hold-86400s",
		},
		{
			Identity{Topic: "t", Convention: AceMQ},
			"t.dlq", "t.parked", "", "t-migrating",
			"t.retry.500ms t.retry.1s t.retry.1500ms t.retry.30s t.retry.90s t.retry.5m t.retry.2h t.retry.24h",
		},
		{
			Identity{Topic: "t", Convention: RabbitKit},
			"t.dlq", "", "", "t-migrating",
			"t.retry.1 t.retry.2 t.retry.3 t.retry.4 t.retry.5 t.retry.6 t.retry.7 t.retry.8",
		},
		{
			Identity{Topic: "t", Convention: Queuey},
			"t.dead", "", "", "t-migrating",
			"t.deferred.500 t.deferred.1000 t.deferred.1500 t.deferred.30000 t.deferred.90000 t.deferred.300000 t.deferred.7200000 t.deferred.86400000",
		},
	} {
		t.Run(string(tc.id.convention())+tc.id.ConsumerGroup, func(t *testing.T) {
			t.Parallel()
			if err := tc.id.Validate(); err != nil {
				t.Fatal(err)
			}
			got := []string{tc.id.WorkQueueName(), tc.id.DeadLetterQueueName(), tc.id.ParkedQueueName(), tc.id.RetryExchangeName(), tc.id.MigratingQueueName()}
			want := []string{"t", tc.deadLetter, tc.parked, tc.retry, tc.migrate}
			if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
				t.Errorf("names %q, want %q", got, want)
			}
			holds := strings.Fields(tc.holds)
			for tier, delay := range durations(t, "500ms 1s 1500ms 30s 90s 5m 2h 1d") {
				if name := tc.id.HoldQueueName(tier, delay, 0); holds[tier] != "-" && name != holds[tier] {
					t.Errorf("hold queue of %s = %q, want %q", delay, name, holds[tier])
				}
			}
		})
	}
}

func TestOddNamesAreTopics(t *testing.T) {
	t.Parallel()
	for _, c := range Conventions() {
		for _, name := range oddNames {
			s := plain(t, c)
			s.Topic = name
			s.DeadLetterQueue, s.ParkedQueue = s.DeadLetterQueueName(), s.ParkedQueueName()
			m, err := s.Manifest()
			if err != nil {
				t.Errorf("%s: topic %q: %v", c, name, err)
				continue
			}
			back, err := DecodeManifest(m.Encode())
			if err != nil || string(back.Encode()) != string(m.Encode()) || back.Topic != name {
				t.Errorf("%s: topic %q: read back as %q, %v", c, name, back.Topic, err)
			}
		}
	}
}

func TestNamesRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		id         Identity
		essentials []string
	}{
		"empty":              {Identity{}, []string{"topic", "empty", "give it one"}},
		"not UTF-8":          {Identity{Topic: "a\xff"}, []string{`"a\xff"`, "not valid UTF-8", "use UTF-8"}},
		"NUL":                {Identity{Topic: "a\x00"}, []string{`"a\x00"`, "NUL", "remove it"}},
		"newline":            {Identity{Topic: "a\nb"}, []string{`"a\nb"`, "line break", `it would be called "ab"`, "remove it"}},
		"carriage return":    {Identity{Topic: "a\r\nb"}, []string{`"a\r\nb"`, `it would be called "ab"`}},
		"reserved":           {Identity{Topic: "amq.x"}, []string{`"amq.x"`, `"amq."`, "reserved by RabbitMQ"}},
		"too long":           {Identity{Topic: strings.Repeat("x", 256)}, []string{"256 bytes", "allows 255", "shorten it by 1"}},
		"too long in UTF-8":  {Identity{Topic: strings.Repeat("ü", 128)}, []string{"256 bytes", "allows 255"}},
		"derived too long":   {Identity{Topic: strings.Repeat("x", 246)}, []string{`-migrating"`, "256 bytes", "allows 255", "shorten the topic's name by 1"}},
		"amq, derived":       {Identity{Topic: "amq", Convention: Queuey}, []string{`"amq"`, `"amq.dead"`, "reserved by RabbitMQ"}},
		"dot":                {Identity{Topic: "."}, []string{`"."`, "path segment"}},
		"dots":               {Identity{Topic: ".."}, []string{`".."`, "path segment"}},
		"convention":         {Identity{Topic: "t", Convention: "kafka"}, []string{`"kafka"`, `"redeliver", "shove", "acemq", "rabbitkit", "queuey"`}},
		"group":              {Identity{Topic: "t", ConsumerGroup: "g"}, []string{`"g"`, "redeliver", "no consumer groups", "only shove", "leave it out"}},
		"group, newline":     {Identity{Topic: "t", Convention: Shove, ConsumerGroup: "g\n"}, []string{`"g\n"`, "line break"}},
		"group, derived":     {Identity{Topic: "t", Convention: Shove, ConsumerGroup: "dlq"}, []string{`"dlq"`, `"t-dlq"`, `"-dlq"`, "another name"}},
		"group, sequenced":   {Identity{Topic: "t", Convention: Shove, ConsumerGroup: "seq-0"}, []string{`"seq-0"`, `"t-seq-0"`}},
		"group, too long":    {Identity{Topic: strings.Repeat("x", 200), Convention: Shove, ConsumerGroup: strings.Repeat("g", 52)}, []string{"257 bytes", "by 2"}},
		"vhost not UTF-8":    {Identity{Topic: "t", VHost: "\xff"}, []string{"vhost", "not valid UTF-8"}},
		"vhost too long":     {Identity{Topic: "t", VHost: strings.Repeat("v", 256)}, []string{"vhost", "256 bytes", "allows 255"}},
		"vhost dot":          {Identity{Topic: "t", VHost: "."}, []string{`vhost "."`, "path segment"}},
		"several line feeds": {Identity{Topic: "\n\n"}, []string{"line break", `called ""`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused(t, tc.id.Validate(), tc.essentials...)
		})
	}
	refused(t, ValidateVHost(""), "vhost", "empty", `"/"`)
	refused(t, ValidateName("dead-letter queue", ""), "dead-letter queue", "empty")
}

// A name that another topic's derived names could take is no topic.
func TestReservedNames(t *testing.T) {
	t.Parallel()
	for c, endings := range map[Convention]string{
		Redeliver: "-dlq -parked -retry -hold-5s -hold-500ms -hold-5s.s1 -hold-500ms.s12 -migrating",
		Shove:     "-dlq -hold-5s -seq-hash -seq-0 -seq-12 -seq-3-hold-5s -g-dlq -g-hold-5s -migrating",
		AceMQ:     ".dlq .parked .retry.500ms .retry.1s .retry.5m .retry.2h -migrating",
		RabbitKit: ".dlq .retry.1 .retry.10 .retry.1.s1 -migrating",
		Queuey:    ".dead .deferred.500 -migrating",
	} {
		for ending := range strings.FieldsSeq(endings) {
			for _, base := range []string{"x", "ü", "a-dlq", "a\tb"} {
				err := Identity{Topic: base + ending, Convention: c}.Validate()
				if err == nil {
					t.Errorf("%s: topic %q was accepted", c, base+ending)
				}
			}
		}
	}
	refused(t, Identity{Topic: "orders-hold-5s"}.Validate(), `"orders-hold-5s"`, "redeliver convention", `"-hold-5s"`, `another topic, "orders"`, "another name")
	for _, id := range []Identity{ // what one convention derives is a topic under another
		{Topic: "x-dlq", Convention: AceMQ}, {Topic: "x.dlq"}, {Topic: "x-parked", Convention: Shove}, {Topic: "x.retry.1"}, {Topic: "x.dlq", Convention: Queuey}, {Topic: "amq"},
	} {
		if err := id.Validate(); err != nil {
			t.Errorf("%s: %v", id.Convention, err)
		}
	}
}

func TestUnknownConventionHasNoNames(t *testing.T) {
	t.Parallel()
	id := Identity{Topic: "t", Convention: "kafka"}
	if names := id.DeadLetterQueueName() + id.ParkedQueueName() + id.RetryExchangeName() + id.HoldQueueName(0, time.Second, 1) + id.ForeignDeadEnd("x-dlq"); names != "" {
		t.Errorf("names %q", names)
	}
	s := Spec{Identity: id}
	for name, build := range map[string]func() (Objects, error){
		"Build": s.Build, "BuildLadder": s.BuildLadder, "BuildWorkQueue": s.BuildWorkQueue,
		"BuildDeadLetterQueue": s.BuildDeadLetterQueue, "BuildParkedQueue": s.BuildParkedQueue,
	} {
		_, err := build()
		if err == nil {
			t.Errorf("%s accepted an unknown convention", name)
		}
	}
}

func TestForeignDeadEnd(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		id   Identity
		name string
		want string
	}{
		{Identity{Topic: "orders"}, "orders-dlq", ""},
		{Identity{Topic: "orders"}, "orders-parked", ""},
		{Identity{Topic: "orders"}, "payments-dlq", "payments"},
		{Identity{Topic: "orders"}, "payments-parked", "payments"},
		{Identity{Topic: "orders"}, "payments-hold-5s", "payments"},
		{Identity{Topic: "orders"}, "failed", ""},
		{Identity{Topic: "orders"}, "-dlq", ""},
		{Identity{Topic: "orders"}, "payments.dlq", ""},
		{Identity{Topic: "orders", Convention: AceMQ}, "payments.dlq", "payments"},
		{Identity{Topic: "orders", Convention: Queuey}, "payments.dead", "payments"},
		{Identity{Topic: "orders", Convention: Shove, ConsumerGroup: "g"}, "orders-g-dlq", ""},
		{Identity{Topic: "orders", Convention: Shove, ConsumerGroup: "g"}, "orders-dlq", ""},
		{Identity{Topic: "orders", Convention: Shove, ConsumerGroup: "g"}, "orders-h-dlq", "orders-h"},
	} {
		if got := tc.id.ForeignDeadEnd(tc.name); got != tc.want {
			t.Errorf("%+v: ForeignDeadEnd(%q) = %q, want %q", tc.id, tc.name, got, tc.want)
		}
	}
}

func TestParseConvention(t *testing.T) {
	t.Parallel()
	for _, c := range Conventions() {
		if got, err := ParseConvention(string(c)); err != nil || got != c {
			t.Errorf("ParseConvention(%q) = %q, %v", c, got, err)
		}
	}
	if got, err := ParseConvention(""); err != nil || got != Redeliver {
		t.Errorf("ParseConvention(\"\") = %q, %v", got, err)
	}
	_, err := ParseConvention("Redeliver")
	refused(t, err, `"Redeliver"`, `"redeliver"`)
}
