package topology

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Mermaid draws the topology as a Mermaid flowchart: from the publishers'
// exchanges to the work queue, from there to the dead ends, and the way of a
// retried message, through hold queues or back from the consumer. Names may
// hold any character. The text is the same for the same manifest.
func (m Manifest) Mermaid() string {
	g := &graph{}
	var work []string
	for _, q := range m.WorkQueues() {
		work = append(work, g.node(q.Name, "work queue", shapeQueue, "work", argumentDetails(q, ArgDeadLetterExchange, ArgDeadLetterKey)...))
	}
	g.publishers(m, work)
	consumer := g.node("consumer", "", shapeRound, "client")
	for _, queue := range work {
		g.edge(queue, consumer, "")
	}
	g.retries(m, work, consumer)
	g.deadEnds(m, work, consumer)
	return g.String()
}

func (g *graph) publishers(m Manifest, work []string) {
	publishers := g.node("publishers", "", shapeRound, "client")
	entry, direct := work[0], "default exchange"
	if m.entry() != "" {
		entry, _ = g.exchange(m.entry())
		direct = "routing key = the message's key"
		for _, queue := range work {
			g.edge(entry, queue, "by the hash of the routing key")
		}
	}
	if len(m.Bindings) == 0 {
		g.edge(publishers, entry, direct)
		return
	}
	for _, b := range m.Bindings {
		key := b.RoutingKey
		if len(b.Arguments) > 0 {
			key = strings.TrimSpace(key + " " + CanonicalJSON(b.Arguments))
		}
		exchange, fresh := g.exchange(b.Exchange)
		if fresh {
			g.edge(publishers, exchange, "")
		}
		g.edge(exchange, entry, key)
	}
}

// retries draws where a retried message waits.
func (g *graph) retries(m Manifest, work []string, consumer string) {
	waits, again := "waits here "+joinDurations(m.Retry.Delays), "then back to the queue"
	if m.WorkQueue.Type == Classic || m.Sequence != nil { // counts nothing, or keeps the order: what is retried stays with the consumer
		again = "then handled again"
	}
	back := func(label string) {
		for _, queue := range work {
			g.edge(consumer, queue, label)
		}
	}
	budget := fmt.Sprintf("at most %d retries", m.Retry.MaxRetries)
	switch {
	case m.Retry.MaxRetries == 0:
	case m.Retry.Strategy == InPlace:
		back("retry, " + waits + ", " + again + ", " + budget)
	case m.Retry.Strategy == BrokerDelayed:
		back(fmt.Sprintf("retry, back to the queue at once, which delays it %s per retry up to %s, %s", m.Retry.DelayMin, m.Retry.DelayMax, budget))
	case m.Retry.Strategy == Hybrid:
		back(fmt.Sprintf("retry below %s, waits here, %s, %s", m.Retry.HoldFrom, again, budget))
	}
	publishes := m.Retry.Strategy == Republish || m.Retry.Strategy == Hybrid
	source := consumer
	if m.RetryExchange != "" && len(m.HoldQueues) > 0 {
		exchange, _ := g.exchange(m.RetryExchange)
		if publishes {
			g.edge(consumer, exchange, "retry, a copy, "+budget)
		}
		source = exchange
	}
	for _, q := range m.HoldQueues {
		home := work[0]
		if len(work) > 1 && q.Shard < len(work) {
			home = work[q.Shard]
		}
		hold := g.node(q.Name, "hold queue "+q.Delay.String(), shapeQueue, "hold", argumentDetails(q.ManifestQueue, ArgMessageTTL, ArgDeadLetterExchange, ArgDeadLetterKey)...)
		if m.RetryExchange != "" {
			g.edge(source, hold, "")
		} else if publishes {
			g.edge(source, hold, "retry, a copy")
		}
		after := "after " + q.Delay.String()
		if through, _ := q.Arguments[ArgDeadLetterExchange].(string); through != "" {
			exchange, fresh := g.exchange(through)
			g.edge(hold, exchange, after)
			if fresh {
				g.edge(exchange, home, m.WorkQueue.Name)
			}
		} else {
			g.edge(hold, home, after)
		}
	}
}

// deadEnds draws where a message goes that is not retried.
func (g *graph) deadEnds(m Manifest, work []string, consumer string) {
	if m.DeadLetter == nil {
		gone := g.node("discarded", "", shapeRound, "gone")
		for _, queue := range work {
			g.edge(queue, gone, "rejected or retries spent")
		}
	} else {
		dlq := g.node(m.DeadLetter.Name, "dead-letter queue", shapeQueue, "dead", argumentDetails(m.DeadLetter.ManifestQueue)...)
		if m.Final == FinalPublish {
			g.route(consumer, dlq, m.DeadLetter, "rejected or retries spent, published")
			if limit, limited := m.WorkQueue.Arguments[ArgDeliveryLimit]; limited {
				g.route(work[0], dlq, m.DeadLetter, "over the delivery limit of "+CanonicalJSON(limit))
			}
		} else {
			for _, queue := range work {
				g.route(queue, dlq, m.DeadLetter, "rejected or retries spent")
			}
		}
	}
	if m.Parked != nil {
		parked := g.node(m.Parked.Name, "parked queue", shapeQueue, "parked", argumentDetails(m.Parked.ManifestQueue)...)
		if m.Park == ParkPublish {
			g.route(consumer, parked, m.Parked, "unreadable, published")
		} else if m.Parked.Exchange != "" {
			exchange, _ := g.exchange(m.Parked.Exchange)
			g.edge(exchange, parked, m.Parked.RoutingKey)
		}
	}
}

// route draws the way to a target through its exchange, or straight where that is the default one.
func (g *graph) route(from, to string, target *ManifestTarget, why string) {
	if target.Exchange == "" {
		g.edge(from, to, why)
		return
	}
	exchange, _ := g.exchange(target.Exchange)
	g.edge(from, exchange, why)
	g.edge(exchange, to, target.RoutingKey)
}

// argumentDetails are the type and the arguments of a queue, one a line, without those that the picture shows anyway.
func argumentDetails(q ManifestQueue, drawn ...string) []string {
	details := []string{string(q.Type)}
	for _, key := range slices.Sorted(maps.Keys(q.Arguments)) {
		if key != ArgQueueType && !slices.Contains(drawn, key) {
			details = append(details, key+" = "+showText(CanonicalJSON(q.Arguments[key])))
		}
	}
	return details
}

func joinDurations(delays []Duration) string {
	texts := make([]string, len(delays))
	for i, d := range delays {
		texts[i] = d.String()
	}
	return strings.Join(texts, ", ")
}

// shape is how Mermaid draws a node: what stands before and after its label.
type shape [2]string

var (
	shapeQueue    = shape{"[", "]"}
	shapeExchange = shape{"{{", "}}"}
	shapeRound    = shape{"([", "])"}
)

// graph collects nodes and edges in the order in which they were added.
type graph struct {
	nodes, edges []string
	exchanges    map[string]string // name to node
	classes      map[string][]string
}

// node adds a node and returns its id. Its label is the kind, the name and the details, a line each.
func (g *graph) node(name, kind string, s shape, class string, details ...string) string {
	id := "n" + strconv.Itoa(len(g.nodes))
	lines := []string{name}
	if kind != "" {
		lines = []string{kind, name}
	}
	lines = append(lines, details...)
	for i, line := range lines {
		lines[i] = escapeMermaid(line)
	}
	g.nodes = append(g.nodes, fmt.Sprintf(`%s%s"%s"%s`, id, s[0], strings.Join(lines, "<br/>"), s[1]))
	if g.classes == nil {
		g.classes = map[string][]string{}
	}
	g.classes[class] = append(g.classes[class], id)
	return id
}

// exchange returns the node of an exchange, which has one however often it is used; fresh says that it was added now.
func (g *graph) exchange(name string) (id string, fresh bool) {
	if id, ok := g.exchanges[name]; ok {
		return id, false
	}
	if g.exchanges == nil {
		g.exchanges = map[string]string{}
	}
	id = g.node(name, "exchange", shapeExchange, "exchange")
	g.exchanges[name] = id
	return id, true
}

func (g *graph) edge(from, to, label string) {
	text := from + " --> " + to
	if label != "" {
		text = fmt.Sprintf(`%s -->|"%s"| %s`, from, escapeMermaid(label), to)
	}
	if !slices.Contains(g.edges, text) {
		g.edges = append(g.edges, text)
	}
}

// graphStyles colours nodes by what they are; the colours hold on light and dark pages.
var graphStyles = []struct{ class, style string }{
	{"work", "fill:#dbeafe,stroke:#1d4ed8,color:#111827"},
	{"hold", "fill:#fef9c3,stroke:#a16207,color:#111827"},
	{"dead", "fill:#fee2e2,stroke:#b91c1c,color:#111827"},
	{"parked", "fill:#ede9fe,stroke:#6d28d9,color:#111827"},
	{"gone", "fill:#ffffff,stroke:#b91c1c,color:#111827,stroke-dasharray:4"},
	{"exchange", "fill:#dcfce7,stroke:#15803d,color:#111827"},
	{"client", "fill:#f3f4f6,stroke:#4b5563,color:#111827"},
}

// String writes the flowchart.
func (g *graph) String() string {
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	for _, line := range append(slices.Clone(g.nodes), g.edges...) {
		b.WriteString("  " + line + "\n")
	}
	for _, s := range graphStyles {
		if ids := g.classes[s.class]; len(ids) > 0 {
			fmt.Fprintf(&b, "  classDef %s %s\n  class %s %s\n", s.class, s.style, strings.Join(ids, ","), s.class)
		}
	}
	return b.String()
}

// escapeMermaid writes text so that Mermaid shows it as it is: everything but
// letters, digits and a few harmless characters becomes an entity code. Control
// characters are shown as their pictures.
func escapeMermaid(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r < 0x20:
			b.WriteRune('\u2400' + r)
		case r == 0x7f:
			b.WriteRune('\u2421')
		case r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(" .,-_=", r)):
			b.WriteRune(r)
		case r >= 0x80 && unicode.IsPrint(r) && r != unicode.ReplacementChar:
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "#%d;", r)
		}
	}
	return b.String()
}
