package command

import (
	"slices"

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

// configWriter writes topics of RabbitMQ.
type configWriter struct {
	*configFile
	v *vhostState
}

// topic writes everything that belongs to a topic, and what imports it.
func (w *configWriter) topic(t importedTopic) {
	label := w.label(t.Topic)
	for _, note := range t.notes {
		w.note(t.Topic, "%s", note)
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
	made := w.imported(kind, label, importIDOf(t.Identity, name))
	made.SetAttributeValue(topicAttribute, text(t.Topic))
	made.SetAttributeValue("vhost", text(t.VHost))
	w.scheme(made, t.Convention, t.ConsumerGroup)
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
		w.note(t.Topic, "%v", err)
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
		w.note(t.Topic, "%v", err)
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
		w.note(t.Topic, "%v", err)
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
		w.note(t.Topic, "it differs from its convention, and the plan will say so: %s", text)
	}
}

// importIDOf is the identifier that a part of a topic is imported by; name is its own where it is not derived.
func importIDOf(id topology.Identity, name string) string {
	return withParams(encoded(id.VHost)+"/"+encoded(id.Topic), id.Convention, id.ConsumerGroup, "name", name)
}
