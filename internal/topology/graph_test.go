package topology

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestMermaid(t *testing.T) {
	t.Parallel()
	with := func(c Convention, f func(*Spec)) Manifest {
		s := plain(t, c)
		f(&s)
		return manifestOf(t, s)
	}
	for name, m := range map[string]Manifest{
		"redeliver_in_place": with(Redeliver, func(s *Spec) {
			s.HoldDelays, s.Retry.Delays = nil, s.HoldDelays
			s.Bindings = []Binding{{Source: "shop.events", RoutingKey: "order.*"}, {Source: "audit", Arguments: Arguments{"x-match": "all"}}}
		}),
		"redeliver_hybrid":         with(Redeliver, func(s *Spec) { s.Retry.Strategy, s.Park = Hybrid, ParkPublish }),
		"redeliver_republish":      with(Redeliver, func(s *Spec) { s.Retry.Strategy = Republish }),
		"redeliver_broker_delayed": with(Redeliver, brokerDelayed),
		"redeliver_no_dead_end": with(Redeliver, func(s *Spec) {
			s.DeadLetterQueue, s.ParkedQueue, s.AllowMessageLoss, s.HoldDelays, s.Retry = "", "", true, nil, RetryPolicy{}
		}),
		"shove_republish":     with(Shove, func(s *Spec) { s.Retry.Strategy = Republish }),
		"redeliver_sequenced": with(Redeliver, sequenced),
		"shove_sequenced": with(Shove, func(s *Spec) {
			sequenced(s)
			s.Bindings = []Binding{{Source: "shop.events", RoutingKey: "order.*"}}
		}),
		"acemq_republish": with(AceMQ, func(s *Spec) { s.Retry.Strategy = Republish }),
		"rabbitkit":       with(RabbitKit, func(*Spec) {}),
		"queuey":          with(Queuey, func(*Spec) {}),
		"odd_names": with(Redeliver, func(s *Spec) {
			s.Topic = "a\"b]c#d;e`f|g{h}<br/>&amp;\ti%%j:::k-->l\\n ü 注文 🛒"
			s.DeadLetterQueue, s.ParkedQueue = "style a:#fff;", "end"
			s.Bindings = []Binding{{Source: "click e", RoutingKey: "line\nbreak"}}
		}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := m.Mermaid()
			if again := m.Mermaid(); again != text {
				t.Error("two pictures of one manifest differ")
			}
			golden(t, filepath.Join("testdata", "graph", name+".mmd"), []byte(text))
			plainMermaid(t, text)
		})
	}
}

// plainMermaid fails where a line of a picture is none that a picture may have.
func plainMermaid(t *testing.T, picture string) {
	t.Helper()
	for line := range strings.Lines(picture) {
		if !mermaidLine.MatchString(strings.TrimSuffix(line, "\n")) {
			t.Errorf("line %q is not plain Mermaid", line)
		}
	}
}

// mermaidLine is every line that a picture may have. Labels hold no character that ends them or means something.
var mermaidLine = regexp.MustCompile(`^(flowchart LR|` +
	`  n\d+(\["` + label + `"\]|\{\{"` + label + `"\}\}|\(\["` + label + `"\]\))|` +
	`  n\d+ -->(\|"` + label + `"\|)? n\d+|` +
	`  classDef [a-z]+ [a-z0-9:,#-]+|` +
	`  class n\d+(,n\d+)* [a-z]+)$`)

const label = `([^"\[\]{}()<>#;&|\x60\\:%\x00-\x1f]|#\d+;|<br/>)*`

func TestEscapeMermaid(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"orders-dlq":    "orders-dlq",
		"a.b_c d,e=f":   "a.b_c d,e=f",
		`"`:             "#34;",
		"#35;":          "#35;35#59;",
		"<br/>":         "#60;br#47;#62;",
		"a\nb\x7f":      "a\u240ab\u2421",
		"ü 注文 🛒":        "ü 注文 🛒",
		"\u2028\u200b":  "#8232;#8203;",
		"`x` {y} (z);&": "#96;x#96; #123;y#125; #40;z#41;#59;#38;",
		"*":             "#42;",
	} {
		if got := escapeMermaid(in); got != want {
			t.Errorf("escapeMermaid(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestDOT(t *testing.T) {
	t.Parallel()
	odd := plain(t, Redeliver)
	odd.Topic = "a\"b]c\\d;e&f\tü\u200b"
	odd.DeadLetterQueue, odd.ParkedQueue = "x -> y", "}"
	acemq := plain(t, AceMQ)
	acemq.Retry.Strategy = Republish
	second := acemq
	second.Topic = "mails"
	second.DeadLetterQueue, second.ParkedQueue = second.DeadLetterQueueName(), second.ParkedQueueName()
	for name, manifests := range map[string][]Manifest{
		"odd_names": {manifestOf(t, odd)}, "two_topics": {manifestOf(t, acemq), manifestOf(t, second)},
	} {
		text := Draw(manifests...).DOT()
		golden(t, filepath.Join("testdata", "graph", name+".dot"), []byte(text))
		for line := range strings.Lines(text) {
			if !dotLine.MatchString(strings.TrimSuffix(line, "\n")) {
				t.Errorf("%s: line %q may be read as something else", name, line)
			}
		}
	}
}

// dotLine is every line that a picture may have: in quotes, a quote and a backslash are escaped.
var dotLine = regexp.MustCompile(`^(digraph redeliver \{|  [a-z]+=[A-Z0-9.]+|  (node|edge) \[[^\]]*\]|` +
	`  n\d+ \[label="([^"\\]|\\.)*" shape=[a-z]+ style="[a-z,]+" fillcolor="#[0-9a-f]+" color="#[0-9a-f]+"\]|  n\d+ -> n\d+( \[label="([^"\\]|\\.)*"\])?|\})$`)
