package command

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// Types of the provider's resources.
const (
	typeDeadLetter = "redeliver_rabbitmq_dead_letter_queue"
	typeParked     = "redeliver_rabbitmq_parked_queue"
	typeLadder     = "redeliver_rabbitmq_hold_ladder"
	typeTopic      = "redeliver_rabbitmq_topic"
)

// configWriter writes topics as Terraform configuration.
type configWriter struct {
	v      *vhostState
	file   *hclwrite.File
	labels map[string]bool
	blocks int
	// notes say what the configuration does not have.
	notes []string
}

// label is the name of a topic's resources: a word that no other topic has.
func (w *configWriter) label(topic string) string {
	word := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, topic)
	if !hclsyntax.ValidIdentifier(word) {
		word = "topic_" + word
	}
	label := word
	for n := 2; w.labels[label]; n++ {
		label = fmt.Sprintf("%s_%d", word, n)
	}
	w.labels[label] = true
	return label
}

// topic writes everything that belongs to a topic, and what imports it.
func (w *configWriter) topic(t importedTopic) {
	label := w.label(t.Topic)
	for _, note := range t.notes {
		w.notes = append(w.notes, fmt.Sprintf("topic %q: %s", t.Topic, note))
	}
	if t.DeadLetterQueue != "" {
		w.deadEnd(t, typeDeadLetter, label, topology.RoleDeadLetter)
	}
	if t.ParkedQueue != "" {
		w.deadEnd(t, typeParked, label, topology.RoleParked)
	}
	if t.Ladder {
		w.ladder(t, label)
	}
	if t.WorkQueue {
		w.work(t, label)
	}
}

// resource begins a resource with the attributes of the identity, behind what imports it.
func (w *configWriter) resource(t importedTopic, kind, label, topicAttribute, name string) *hclwrite.Body {
	body := w.file.Body()
	if w.blocks > 0 {
		body.AppendNewline()
	}
	w.blocks++
	imports := body.AppendNewBlock("import", nil).Body()
	imports.SetAttributeTraversal("to", traversal(kind, label))
	imports.SetAttributeValue("id", cty.StringVal(importIDOf(t.Identity, name)))
	body.AppendNewline()
	made := body.AppendNewBlock("resource", []string{kind, label}).Body()
	made.SetAttributeValue(topicAttribute, text(t.Topic))
	made.SetAttributeValue("vhost", text(t.VHost))
	made.SetAttributeValue("convention", text(string(t.Convention)))
	if t.ConsumerGroup != "" {
		made.SetAttributeValue("consumer_group", text(t.ConsumerGroup))
	}
	return made
}

func (w *configWriter) deadEnd(t importedTopic, kind, label string, role topology.Role) {
	name, own := t.DeadLetterQueue, ""
	derived := t.DeadLetterQueueName()
	if role == topology.RoleParked {
		name, derived = t.ParkedQueue, t.ParkedQueueName()
	}
	if name != derived {
		own = name
	}
	body := w.resource(t, kind, label, "topic", own)
	if own != "" {
		body.SetAttributeValue("name", text(own))
	}
	s := topology.Spec{Identity: t.Identity}
	// Where the convention leaves the type open, that of the queue is what was asked for.
	live := w.v.queues[name]
	if kinds := t.Convention.QueueTypes(); live.Type != kinds[0] && slices.Contains(kinds, live.Type) {
		body.SetAttributeValue("work_queue_type", text(string(live.Type)))
		s.QueueType = live.Type
	}
	var objects topology.Objects
	var err error
	if role == topology.RoleParked {
		s.ParkedQueue = name
		objects, err = s.BuildParkedQueue()
	} else {
		s.DeadLetterQueue = name
		objects, err = s.BuildDeadLetterQueue()
	}
	if err != nil {
		w.notes = append(w.notes, fmt.Sprintf("topic %q: %v", t.Topic, err))
		return
	}
	w.beyond(body, t, objects.Queues)
}

func (w *configWriter) ladder(t importedTopic, label string) {
	s := t.ladder()
	body := w.resource(t, typeLadder, label, "topic", "")
	body.SetAttributeValue("delays", durations(s.HoldDelays))
	if s.JitterShards > 1 {
		body.SetAttributeValue("jitter_shards", cty.NumberIntVal(int64(s.JitterShards)))
		body.SetAttributeValue("jitter_factor", cty.NumberFloatVal(s.JitterFactor))
	}
	if s.SequenceShards > 0 {
		body.SetAttributeValue("sequence_shards", cty.NumberIntVal(int64(s.SequenceShards)))
	}
	objects, err := s.BuildLadder()
	if err != nil {
		w.notes = append(w.notes, fmt.Sprintf("topic %q: %v", t.Topic, err))
		return
	}
	w.beyond(body, t, objects.Queues)
}

func (w *configWriter) work(t importedTopic, label string) {
	s := t.spec
	body := w.resource(t, typeTopic, label, "name", "")
	if s.QueueType != "" {
		body.SetAttributeValue("queue_type", text(string(s.QueueType)))
	}
	switch s.DeadLetterQueue {
	case "":
		body.SetAttributeValue("allow_message_loss", cty.True)
	case t.DeadLetterQueue:
		body.SetAttributeTraversal("dead_letter_queue", traversal(typeDeadLetter, label, "name"))
	default:
		body.SetAttributeValue("dead_letter_queue", text(s.DeadLetterQueue))
	}
	if t.ParkedQueue != "" {
		body.SetAttributeTraversal("parked_queue", traversal(typeParked, label, "name"))
	}
	if len(s.HoldDelays) > 0 {
		body.SetAttributeTraversal("hold_queues", traversal(typeLadder, label, "queues"))
	}
	if s.Sequenced {
		body.SetAttributeValue("sequenced", cty.True)
	}
	if s.SequenceShards > 0 {
		body.SetAttributeValue("sequence_shards", cty.NumberIntVal(int64(s.SequenceShards)))
	}
	if s.DeliveryLimit > 0 {
		body.SetAttributeValue("delivery_limit", cty.NumberIntVal(int64(s.DeliveryLimit)))
	}
	if s.MaxPriority != nil {
		body.SetAttributeValue("max_priority", cty.NumberIntVal(int64(*s.MaxPriority)))
	}
	switch r := s.Retry; {
	case r.Strategy == topology.BrokerDelayed:
		body.SetAttributeValue("retry", cty.ObjectVal(map[string]cty.Value{
			"strategy": text(string(r.Strategy)), "delay_min": text(topology.FormatDuration(r.DelayMin)), "delay_max": text(topology.FormatDuration(r.DelayMax)),
		}))
	case !t.defaultRetry:
		retry := map[string]cty.Value{"max_retries": cty.NumberIntVal(int64(r.MaxRetries))}
		if r.Strategy != "" {
			retry["strategy"] = text(string(r.Strategy))
		}
		body.SetAttributeValue("retry", cty.ObjectVal(retry))
	}
	if len(s.Bindings) > 0 {
		bindings := make([]cty.Value, len(s.Bindings))
		for i, b := range s.Bindings {
			bindings[i] = cty.ObjectVal(map[string]cty.Value{"exchange": text(b.Source), "routing_key": text(b.RoutingKey)})
		}
		body.SetAttributeValue("bindings", cty.TupleVal(bindings))
	}
	objects, err := s.BuildWorkQueue()
	if err != nil {
		w.notes = append(w.notes, fmt.Sprintf("topic %q: %v", t.Topic, err))
		return
	}
	work := slices.DeleteFunc(objects.Queues, func(q topology.Queue) bool { return q.Role != topology.RoleWork })
	w.beyond(body, t, work)
}

// beyond writes what the queues have beyond the contract.
func (w *configWriter) beyond(body *hclwrite.Body, t importedTopic, queues []topology.Queue) {
	extra, left := w.v.extra(queues)
	if len(extra) > 0 {
		body.SetAttributeValue("extra_arguments", valueOf(map[string]any(extra)))
	}
	if w.v.merged(queues) {
		body.SetAttributeValue("merge_policy", cty.True)
	}
	for _, text := range left {
		w.notes = append(w.notes, fmt.Sprintf("topic %q differs from its convention, and the plan will say so: %s", t.Topic, text))
	}
}

func text(s string) cty.Value { return cty.StringVal(s) }

func durations(delays []time.Duration) cty.Value {
	values := make([]cty.Value, len(delays))
	for i, d := range delays {
		values[i] = text(topology.FormatDuration(d))
	}
	return cty.TupleVal(values)
}

// valueOf is a value of an argument, whose type is kept.
func valueOf(value any) cty.Value {
	switch v := value.(type) {
	case string:
		return text(v)
	case bool:
		return cty.BoolVal(v)
	case int64:
		return cty.NumberIntVal(v)
	case float64:
		return cty.NumberFloatVal(v)
	case []any:
		values := make([]cty.Value, len(v))
		for i, inner := range v {
			values[i] = valueOf(inner)
		}
		return cty.TupleVal(values)
	case topology.Arguments:
		return valueOf(map[string]any(v))
	case map[string]any:
		fields := make(map[string]cty.Value, len(v))
		for name, inner := range v {
			fields[name] = valueOf(inner)
		}
		return cty.ObjectVal(fields)
	}
	return cty.NullVal(cty.DynamicPseudoType)
}

func traversal(root string, rest ...string) hcl.Traversal {
	out := hcl.Traversal{hcl.TraverseRoot{Name: root}}
	for _, name := range rest {
		out = append(out, hcl.TraverseAttr{Name: name})
	}
	return out
}

// importIDOf is the identifier that a part of a topic is imported by; name is its own where it is not derived.
func importIDOf(id topology.Identity, name string) string {
	encode := func(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }
	out := encode(id.VHost) + "/" + encode(id.Topic)
	separator := "?"
	for _, p := range [][2]string{{"consumer_group", id.ConsumerGroup}, {"convention", string(id.Convention)}, {"name", name}} {
		if p[1] == "" || p[0] == "convention" && id.Convention == topology.Redeliver {
			continue
		}
		out += separator + p[0] + "=" + encode(p[1])
		separator = "&"
	}
	return out
}
