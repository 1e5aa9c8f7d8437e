package command

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"github.com/redeliver/terraform-provider-redeliver/internal/sqsadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/sqsapi"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// Types of the provider's resources on Amazon SQS.
const (
	typeSQSDeadLetter = "redeliver_sqs_dead_letter_queue"
	typeSQSParked     = "redeliver_sqs_parked_queue"
	typeSQSTopic      = "redeliver_sqs_topic"
)

// sqsConfigWriter writes topics of Amazon SQS.
type sqsConfigWriter struct {
	*configFile
	v *sqsState
}

// topic writes everything that belongs to a topic, and what imports it.
func (w *sqsConfigWriter) topic(ctx context.Context, t sqsTopic) error {
	label := w.label(t.Topic)
	names := map[string]hclwrite.Tokens{} // of dead ends that are written, by name
	for _, end := range []struct {
		role       topology.Role
		kind, name string
	}{{topology.RoleDeadLetter, typeSQSDeadLetter, t.deadLetter}, {topology.RoleDeadLetter, typeSQSDeadLetter, t.other}, {topology.RoleParked, typeSQSParked, t.parked}} {
		if end.name == "" {
			continue
		}
		own := label
		if end.name == t.other && t.deadLetter != "" {
			own = w.label(end.name)
		}
		written, err := w.deadEnd(ctx, t, end.role, end.kind, own, end.name)
		if err != nil {
			return err
		}
		if written {
			names[end.name] = hclwrite.TokensForTraversal(traversal(end.kind, own, "name"))
		}
	}
	if t.work == "" {
		return nil
	}
	return w.work(ctx, t, label, names)
}

// deadEnd writes a dead-letter or a parked queue. written is false where it is left out.
func (w *sqsConfigWriter) deadEnd(ctx context.Context, t sqsTopic, role topology.Role, kind, label, name string) (written bool, err error) {
	end, differs := w.v.end(t.SQSIdentity, role, name)
	topic := ""
	if end.Name != "" {
		topic = t.Topic
	}
	id := w.importID(t, name, topic)
	tags, ok, err := w.tags(ctx, t, kind, name, id, differs)
	if err != nil || !ok {
		return false, err
	}
	body := w.resource(t, kind, label, id, "topic")
	if end.Name != "" {
		body.SetAttributeValue("name", text(end.Name))
	}
	if end.SourceQueue != "" {
		body.SetAttributeValue("source_queue", text(end.SourceQueue))
	}
	w.settings(body, end.SQSQueueSettings, tags)
	return true, nil
}

// work writes the topic's own part.
func (w *sqsConfigWriter) work(ctx context.Context, t sqsTopic, label string, names map[string]hclwrite.Tokens) error {
	s, differs := w.v.spec(t)
	id := w.importID(t, t.work, "")
	tags, ok, err := w.tags(ctx, t, typeSQSTopic, t.work, id, differs)
	if err != nil || !ok {
		return err
	}
	body := w.resource(t, typeSQSTopic, label, id, "name")
	for _, end := range []struct{ attribute, name string }{{"dead_letter_queue", s.DeadLetterQueue}, {"parked_queue", s.ParkedQueue}} {
		switch tokens, written := names[end.name]; {
		case end.name == "":
		case written:
			body.SetAttributeRaw(end.attribute, tokens)
		default:
			body.SetAttributeValue(end.attribute, text(end.name))
		}
	}
	if s.DeadLetterQueue != "" && w.v.urls[s.DeadLetterQueue] != "" && w.v.queues[s.DeadLetterQueue] == nil {
		w.note(t.Topic, "it redrives to queue %q, which is not there or cannot be read", s.DeadLetterQueue)
	}
	if s.AllowMessageLoss {
		body.SetAttributeValue("allow_message_loss", cty.True)
	}
	retry := map[string]cty.Value{"max_retries": cty.NumberIntVal(int64(s.Retry.MaxRetries))}
	if len(s.Retry.Delays) > 0 {
		retry["delays"] = durations(s.Retry.Delays)
	}
	body.SetAttributeValue("retry", cty.ObjectVal(retry))
	w.settings(body, s.SQSQueueSettings, tags)
	return nil
}

// importID is what a queue is imported by; topic is whose it is, where its name does not tell.
func (w *sqsConfigWriter) importID(t sqsTopic, name, topic string) string {
	return withParams(w.v.where.ARN(name), t.Convention, t.ConsumerGroup, "topic", topic)
}

// tags are those of a queue that is to be written. ok is false, and a note is made, where it is left out: because it differs,
// because its tags cannot be read, or because it has gone.
func (w *sqsConfigWriter) tags(ctx context.Context, t sqsTopic, kind, name, id, differs string) (tags map[string]string, ok bool, err error) {
	leave := func(format string, args ...any) {
		w.note(t.Topic, "queue %q is left out: "+format, append([]any{name}, args...)...)
	}
	if differs != "" {
		leave("as a %s with the import id %q the plan would change it, or refuse it: %s", kind, id, differs)
		return nil, false, nil
	}
	live, err := w.v.admin.Queue(ctx, sqsadmin.Address{Name: name, URL: w.v.urls[name], ARN: w.v.where.ARN(name)})
	denied, _ := sqsapi.Denied(err)
	switch {
	case errors.Is(err, sqsadmin.ErrNotFound):
		leave("it was deleted just now")
		return nil, false, nil
	case denied:
		leave("its tags cannot be read, for which the credentials need %s", topology.ActionListTags)
		return nil, false, nil
	}
	return live.Tags, err == nil, err
}

// resource begins a resource with the attributes of the identity, behind what imports it.
func (w *sqsConfigWriter) resource(t sqsTopic, kind, label, id, topicAttribute string) *hclwrite.Body {
	body := w.imported(kind, label, id)
	body.SetAttributeValue(topicAttribute, text(t.Topic))
	w.scheme(body, t.Convention, t.ConsumerGroup)
	if t.FIFO {
		body.SetAttributeValue("fifo", cty.True)
	}
	return body
}

// settings writes those of a queue's settings that are not what they are by default.
func (w *sqsConfigWriter) settings(body *hclwrite.Body, q topology.SQSQueueSettings, tags map[string]string) {
	for _, length := range []struct {
		attribute string
		value     time.Duration
	}{
		{"visibility_timeout", q.VisibilityTimeout},
		{"retention", q.Retention},
		{"delay", q.Delay},
		{"receive_wait", q.ReceiveWait},
		{"kms_data_key_reuse", q.KMSDataKeyReuse},
	} {
		if length.value != 0 {
			body.SetAttributeValue(length.attribute, text(topology.FormatDuration(length.value)))
		}
	}
	for _, word := range []struct{ attribute, value string }{
		{"encryption", q.SSE}, {"kms_key", q.KMSKey}, {"deduplication_scope", q.DeduplicationScope}, {"throughput_limit", q.ThroughputLimit},
	} {
		if word.value != "" {
			body.SetAttributeValue(word.attribute, text(word.value))
		}
	}
	if q.MaxMessageSize != 0 {
		body.SetAttributeValue("max_message_size", cty.NumberIntVal(int64(q.MaxMessageSize)))
	}
	if q.ContentBasedDeduplication {
		body.SetAttributeValue("content_based_deduplication", cty.True)
	}
	if q.Policy != "" {
		body.SetAttributeRaw("policy", policyTokens(q.Policy))
	}
	if len(tags) > 0 {
		values := map[string]cty.Value{}
		for key, value := range tags {
			values[key] = text(value)
		}
		body.SetAttributeValue("tags", cty.ObjectVal(values))
	}
}

// policyTokens is an access policy as an expression that people can read.
func policyTokens(policy string) hclwrite.Tokens {
	var document map[string]any
	if err := json.Unmarshal([]byte(policy), &document); err != nil {
		return hclwrite.TokensForValue(text(policy))
	}
	return hclwrite.TokensForFunctionCall("jsonencode", hclwrite.TokensForValue(valueOf(document)))
}
