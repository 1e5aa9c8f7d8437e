package topology

import (
	"regexp"
	"strings"
	"testing"
)

func TestPermissions(t *testing.T) {
	t.Parallel()
	change := func(c Convention, f func(*Spec)) Manifest {
		s := plain(t, c)
		if f != nil {
			f(&s)
		}
		return manifestOf(t, s)
	}
	republish := func(s *Spec) { s.Retry.Strategy = Republish }
	hybrid := func(s *Spec) { s.Retry.Strategy = Hybrid }
	bound := func(s *Spec) {
		s.Bindings = []Binding{{Source: "shop.events", RoutingKey: "a"}, {Source: "shop.events", RoutingKey: "b"}, {Source: "amq.topic"}}
	}
	const reaches = `Write on amq.default, the default exchange, reaches every queue of vhost "/"`
	for name, tc := range map[string]struct {
		manifest    Manifest
		role        AccessRole
		write, read string
		notes       []string
	}{
		"in place":                        {change(Redeliver, nil), AccessConsumer, "^$", "^orders$", nil},
		"in place, shove":                 {change(Shove, nil), AccessConsumer, "^$", "^orders$", nil},
		"in place, acemq":                 {change(AceMQ, nil), AccessConsumer, "^$", "^orders$", nil},
		"in place, rabbitkit":             {change(RabbitKit, nil), AccessConsumer, "^$", "^orders$", nil},
		"in place, final is published":    {change(Queuey, nil), AccessConsumer, `^amq\.default$`, "^orders$", []string{reaches}},
		"in place, nothing to publish to": {change(Queuey, func(s *Spec) { s.DeadLetterQueue, s.AllowMessageLoss = "", true }), AccessConsumer, "^$", "^orders$", nil},
		"in place, park is published":     {change(Redeliver, func(s *Spec) { s.Park = ParkPublish }), AccessConsumer, "^orders-retry$", "^orders$", nil},
		"in place, acemq parks":           {change(AceMQ, func(s *Spec) { s.Park = ParkPublish }), AccessConsumer, `^acemq\.dlx$`, "^orders$", nil},
		"broker delayed":                  {change(Redeliver, brokerDelayed), AccessConsumer, "^$", "^orders$", nil},
		"hybrid":                          {change(Redeliver, hybrid), AccessConsumer, "^orders-retry$", "^orders$", nil},
		"hybrid, acemq":                   {change(AceMQ, hybrid), AccessConsumer, `^amq\.default$`, "^orders$", []string{reaches}},
		"republish":                       {change(Redeliver, republish), AccessConsumer, "^orders-retry$", "^orders$", nil},
		"republish, shove":                {change(Shove, republish), AccessConsumer, `^amq\.default$`, "^orders$", []string{reaches}},
		"republish, rabbitkit":            {change(RabbitKit, republish), AccessConsumer, `^amq\.default$`, "^orders$", []string{reaches}},
		"republish, acemq":                {change(AceMQ, republish), AccessConsumer, `^(acemq\.dlx|amq\.default)$`, "^orders$", []string{reaches}},

		"in place, a sequence":    {change(Redeliver, sequenced), AccessConsumer, "^$", "^orders$", nil},
		"in place, shards":        {change(Shove, sequenced), AccessConsumer, "^$", "^(orders-seq-0|orders-seq-1)$", nil},
		"publisher, shards":       {change(Shove, sequenced), AccessPublisher, "^orders-seq-hash$", "^$", []string{`2 shards through the exchange "orders-seq-hash"`}},
		"publisher, shards bound": {change(Shove, func(s *Spec) { sequenced(s); bound(s) }), AccessPublisher, `^(amq\.topic|shop\.events)$`, "^$", nil},
		"operator, shards": {
			change(Shove, func(s *Spec) { sequenced(s); s.HoldDelays = s.HoldDelays[:1] }), AccessOperator, `^(amq\.default|orders-seq-hash)$`,
			"^(orders-dlq|orders-seq-0|orders-seq-0-hold-5s|orders-seq-1|orders-seq-1-hold-5s)$",
			[]string{`Replay publishes to the 2 shards through the exchange "orders-seq-hash"`, `"management"`, reaches},
		},

		"publisher":              {change(Redeliver, bound), AccessPublisher, `^(amq\.topic|shop\.events)$`, "^$", nil},
		"publisher, no bindings": {change(Redeliver, nil), AccessPublisher, `^amq\.default$`, "^$", []string{`Topic "orders" has no bindings`, reaches}},

		"operator": {
			change(Redeliver, nil), AccessOperator, `^(amq\.default|orders-retry)$`,
			"^(orders|orders-dlq|orders-hold-120s|orders-hold-30s|orders-hold-5s|orders-parked)$",
			[]string{`work queue "orders"`, `"management"`, reaches},
		},
		"operator, acemq": {
			change(AceMQ, nil), AccessOperator, `^(acemq\.dlx|amq\.default)$`,
			`^(orders|orders\.dlq|orders\.parked|orders\.retry\.2m|orders\.retry\.30s|orders\.retry\.5s)$`,
			[]string{"", "", reaches},
		},
		"operator, rabbitkit": {
			change(RabbitKit, nil), AccessOperator, `^amq\.default$`, `^(orders|orders\.dlq|orders\.retry\.1|orders\.retry\.2|orders\.retry\.3)$`, []string{"", "", reaches},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Permissions(tc.manifest, tc.role)
			if err != nil {
				t.Fatal(err)
			}
			if got.Configure != "^$" || got.Write != tc.write || got.Read != tc.read {
				t.Errorf("configure %s, write %s, read %s; want ^$, %s, %s", got.Configure, got.Write, got.Read, tc.write, tc.read)
			}
			if len(got.Notes) != len(tc.notes) {
				t.Fatalf("notes %q", got.Notes)
			}
			for i, note := range tc.notes {
				if !strings.Contains(got.Notes[i], note) || !strings.HasSuffix(got.Notes[i], ".") {
					t.Errorf("note %q does not say %q", got.Notes[i], note)
				}
			}
		})
	}
	_, err := Permissions(manifestOf(t, plain(t, Redeliver)), "admin")
	refused(t, err, `"admin"`, `"consumer", "publisher", "operator"`)
}

// The patterns match the names they are for and no other, whatever the names hold.
func TestPermissionPatternsAreExact(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{"", "a"} {
		if regexp.MustCompile(exactly(nil)).MatchString(pattern) != (pattern == "") {
			t.Errorf("the pattern for nothing matches %q", pattern)
		}
	}
	all := regexp.MustCompile(exactly(oddNames))
	for i, name := range oddNames {
		one := exactly([]string{name})
		if strings.ContainsAny(one, "\n\t\x7f") {
			t.Errorf("pattern %q is not on one line", one)
		}
		single := regexp.MustCompile(one)
		for j, other := range oddNames {
			if single.MatchString(other) != (i == j) {
				t.Errorf("pattern %s and name %q", one, other)
			}
		}
		for _, other := range []string{name + "x", "x" + name, name + "\n", strings.ReplaceAll(name, ".", "_") + "_"} {
			if single.MatchString(other) || all.MatchString(other) {
				t.Errorf("pattern %s also matches %q", one, other)
			}
		}
		if !all.MatchString(name) {
			t.Errorf("the pattern of all names misses %q", name)
		}
	}
}
