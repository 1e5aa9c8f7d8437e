package topology

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Mermaid draws the topology as a Mermaid flowchart: [Graph.Mermaid] of it alone.
func (m Manifest) Mermaid() string { return Draw(m).Mermaid() }

// Graph is a picture of topologies: from the publishers' exchanges to the work
// queue, from there to the dead ends, and the way of a retried message, through
// hold queues or back from the consumer. Who publishes and who consumes have the
// permissions that they need. Names may hold any character. The picture is the
// same for the same manifests.
type Graph struct {
	nodes     []graphNode
	edges     []graphEdge
	exchanges map[string]string // vhost and name to node
	vhost     string            // of what is being drawn
}

// Draw draws topologies into one picture. An exchange that several have is there once.
func Draw(manifests ...Manifest) *Graph {
	g := &Graph{exchanges: map[string]string{}}
	for _, m := range manifests {
		var of []string
		if len(manifests) > 1 {
			of = []string{"of " + m.Topic}
		}
		g.draw(m, of)
	}
	return g
}

func (g *Graph) draw(m Manifest, of []string) {
	if m.Broker == BrokerSQS {
		g.sqs(m)
		return
	}
	g.vhost = m.VHost
	var work []string
	for _, q := range m.WorkQueues() {
		work = append(work, g.node(q.Name, "work queue", shapeQueue, "work", argumentDetails(q, ArgDeadLetterExchange, ArgDeadLetterKey)...))
	}
	g.publishers(m, work, of)
	consumer := g.node("consumer", "", shapeRound, "client", append(of, permissionDetails(m, AccessConsumer)...)...)
	for _, queue := range work {
		g.edge(queue, consumer, "")
	}
	g.retries(m, work, consumer)
	g.deadEnds(m, work, consumer)
}

func (g *Graph) publishers(m Manifest, work, of []string) {
	publishers := g.node("publishers", "", shapeRound, "client", append(of, permissionDetails(m, AccessPublisher)...)...)
	entry, direct := work[0], "default exchange"
	if m.entry() != "" {
		entry = g.exchange(m.entry())
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
		exchange := g.exchange(b.Exchange)
		g.edge(publishers, exchange, "")
		g.edge(exchange, entry, key)
	}
}

// retries draws where a retried message waits.
func (g *Graph) retries(m Manifest, work []string, consumer string) {
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
		exchange := g.exchange(m.RetryExchange)
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
			exchange := g.exchange(through)
			g.edge(hold, exchange, after)
			g.edge(exchange, home, m.WorkQueue.Name)
		} else {
			g.edge(hold, home, after)
		}
	}
}

// deadEnds draws where a message goes that is not retried.
func (g *Graph) deadEnds(m Manifest, work []string, consumer string) {
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
			exchange := g.exchange(m.Parked.Exchange)
			g.edge(exchange, parked, m.Parked.RoutingKey)
		}
	}
}

// route draws the way to a target through its exchange, or straight where that is the default one.
func (g *Graph) route(from, to string, target *ManifestTarget, why string) {
	if target.Exchange == "" {
		g.edge(from, to, why)
		return
	}
	exchange := g.exchange(target.Exchange)
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

// permissionDetails are the patterns of what a role may do, but for those that allow nothing.
func permissionDetails(m Manifest, role AccessRole) []string {
	set, err := Permissions(m, role)
	if err != nil {
		return nil
	}
	var details []string
	for _, may := range [][2]string{{"configure", set.Configure}, {"write", set.Write}, {"read", set.Read}} {
		if may[1] != exactly(nil) {
			details = append(details, "may "+may[0]+" "+may[1])
		}
	}
	return details
}

// nodeShape is what a node looks like.
type nodeShape int

const (
	shapeQueue nodeShape = iota
	shapeExchange
	shapeRound
)

// graphNode is a queue, an exchange or a client. Its label is the kind, the name and the details, a line each.
type graphNode struct {
	id, kind, name string
	details        []string
	shape          nodeShape
	class          string
}

// lines are the label's.
func (n graphNode) lines() []string {
	lines := []string{n.name}
	if n.kind != "" {
		lines = []string{n.kind, n.name}
	}
	return append(lines, n.details...)
}

// graphEdge is a way that messages take.
type graphEdge struct{ from, to, label string }

// node adds a node and returns its id.
func (g *Graph) node(name, kind string, s nodeShape, class string, details ...string) string {
	id := "n" + strconv.Itoa(len(g.nodes))
	g.nodes = append(g.nodes, graphNode{id: id, kind: kind, name: name, details: details, shape: s, class: class})
	return id
}

// exchange returns the node of an exchange, which has one however often it is used.
func (g *Graph) exchange(name string) string {
	key := g.vhost + "\x00" + name
	id, ok := g.exchanges[key]
	if !ok {
		id = g.node(name, "exchange", shapeExchange, "exchange")
		g.exchanges[key] = id
	}
	return id
}

func (g *Graph) edge(from, to, label string) {
	if e := (graphEdge{from, to, label}); !slices.Contains(g.edges, e) {
		g.edges = append(g.edges, e)
	}
}

// graphStyles colours nodes by what they are; the colours hold on light and dark pages.
var graphStyles = []struct{ class, fill, stroke, dashes string }{
	{"work", "#dbeafe", "#1d4ed8", ""},
	{"hold", "#fef9c3", "#a16207", ""},
	{"dead", "#fee2e2", "#b91c1c", ""},
	{"parked", "#ede9fe", "#6d28d9", ""},
	{"gone", "#ffffff", "#b91c1c", "4"},
	{"exchange", "#dcfce7", "#15803d", ""},
	{"client", "#f3f4f6", "#4b5563", ""},
}

// graphText is the colour of what is written in a node.
const graphText = "#111827"

// controlPicture shows a control character as its picture; false for any other one.
func controlPicture(r rune) (rune, bool) {
	switch {
	case r < 0x20:
		return '\u2400' + r, true
	case r == 0x7f:
		return '\u2421', true
	}
	return r, false
}
