package provider

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// sqsPartModel are the attributes that every queue of a topic on SQS has: the topic's own, its dead-letter queue and its
// parked queue. What is configured stays as it is configured; what SQS has is in ARN, URL, Attributes and TagsAll.
type sqsPartModel struct {
	ID                        types.String   `tfsdk:"id"`
	Convention                types.String   `tfsdk:"convention"`
	ConsumerGroup             types.String   `tfsdk:"consumer_group"`
	FIFO                      types.Bool     `tfsdk:"fifo"`
	VisibilityTimeout         types.String   `tfsdk:"visibility_timeout"`
	Retention                 types.String   `tfsdk:"retention"`
	Delay                     types.String   `tfsdk:"delay"`
	ReceiveWait               types.String   `tfsdk:"receive_wait"`
	MaxMessageSize            types.Int64    `tfsdk:"max_message_size"`
	Encryption                types.String   `tfsdk:"encryption"`
	KMSKey                    types.String   `tfsdk:"kms_key"`
	KMSDataKeyReuse           types.String   `tfsdk:"kms_data_key_reuse"`
	ContentBasedDeduplication types.Bool     `tfsdk:"content_based_deduplication"`
	DeduplicationScope        types.String   `tfsdk:"deduplication_scope"`
	ThroughputLimit           types.String   `tfsdk:"throughput_limit"`
	AccessPolicy              types.String   `tfsdk:"policy"`
	Tags                      types.Map      `tfsdk:"tags"`
	TagsAll                   types.Map      `tfsdk:"tags_all"`
	DeleteNonEmpty            types.Bool     `tfsdk:"delete_non_empty"`
	AdoptExisting             types.Bool     `tfsdk:"adopt_existing"`
	ARN                       types.String   `tfsdk:"arn"`
	URL                       types.String   `tfsdk:"url"`
	Attributes                types.Map      `tfsdk:"attributes"`
	Timeouts                  timeouts.Value `tfsdk:"timeouts"`
}

// sqsTimeout bounds every operation on a queue unless timeouts says otherwise. SQS takes up to a minute to show a write, and a
// minute until a deleted queue's name can be used again.
const sqsTimeout = 5 * time.Minute

// sqsPartAttributes adds the attributes of [sqsPartModel] to a resource's own. object says what the resource makes, and
// retention what it keeps messages for by default, for the documentation.
func sqsPartAttributes(ctx context.Context, object, params string, retention time.Duration, own map[string]schema.Attribute) map[string]schema.Attribute {
	length := func(what string, otherwise time.Duration) schema.Attribute {
		text := what
		if otherwise > 0 {
			text += " Defaults to `" + topology.FormatDuration(otherwise) + "`."
		}
		return schema.StringAttribute{Optional: true, Validators: durationText(), MarkdownDescription: text}
	}
	attributes := map[string]schema.Attribute{
		"id": schema.StringAttribute{
			Computed:            true,
			MarkdownDescription: "The identifier the resource is imported by: the queue's ARN, with `?" + params + "` where needed. Its name or URL does as well.",
		},
		"convention": schema.StringAttribute{
			Optional: true, Computed: true, Validators: oneOf(topology.Conventions()),
			MarkdownDescription: "The naming scheme: `redeliver` or `shove`; the others put dots into names, which SQS cannot hold. Defaults to the provider's. Changing it replaces the resource.",
		},
		"consumer_group": schema.StringAttribute{
			Optional: true, Computed: true,
			MarkdownDescription: "Put between the topic's name and what is derived from it. Only the `shove` convention has consumer groups. Defaults to the provider's. Changing it replaces the resource.",
		},
		"fifo": schema.BoolAttribute{
			Optional: true, Computed: true, Default: booldefault.StaticBool(false),
			MarkdownDescription: "A FIFO queue, which keeps the order of a message group; its name gets the suffix `.fifo`. All queues of a topic are of one type. Defaults to `false`. Changing it replaces the resource.",
		},
		"visibility_timeout": length("How long a message that was received is not received again, unless its consumer says otherwise. Consumers of this project extend it while a handler runs.", topology.DefaultVisibilityTimeout),
		"retention": length("How long SQS keeps a message, from when it was first sent (on a standard queue also in the dead-letter queue); then it is deleted silently. "+
			"`"+topology.FormatDuration(topology.MinRetention)+"` to `"+topology.FormatDuration(topology.MaxRetention)+"`.", retention),
		"delay":        length("How long a message that was sent waits before it is received for the first time, at most `"+topology.FormatDuration(topology.MaxQueueDelay)+"`. Defaults to none.", 0),
		"receive_wait": length("How long a receive that does not say so itself waits for a message, at most `"+topology.FormatDuration(topology.MaxReceiveWait)+"`. Consumers of this project say it. Defaults to not at all.", 0),
		"max_message_size": schema.Int64Attribute{
			Optional: true, Validators: []validator.Int64{int64validator.Between(topology.MinMessageSize, topology.MaxMessageSize)},
			MarkdownDescription: fmt.Sprintf("The largest message in bytes that SQS takes, `%d` to `%d`. Defaults to AWS's default, which is `%d`, or `%d` in some regions and of older queues: neither is drift.",
				topology.MinMessageSize, topology.MaxMessageSize, topology.MaxMessageSize, topology.OldMaxMessageSize),
		},
		"encryption": schema.StringAttribute{
			Optional: true, Validators: oneOf(topology.SSEModes()),
			MarkdownDescription: "How messages are encrypted at rest: `sqs` (with keys that SQS manages; the default), `kms` (with `kms_key`, and the default where there is one) or `none`.",
		},
		"kms_key": schema.StringAttribute{
			Optional: true, MarkdownDescription: "The key of `kms` encryption: its id, ARN or alias (`alias/NAME`). Consumers and publishers need permission on it, which `build_iam_policy` names.",
		},
		"kms_data_key_reuse": length("How long SQS uses a data key before it asks KMS for another, at most `"+topology.FormatDuration(topology.MaxKMSReuse)+"`.", topology.DefaultKMSReuse),
		"content_based_deduplication": schema.BoolAttribute{
			Optional: true, MarkdownDescription: "On a FIFO queue, take the digest of a message's body for its deduplication id. Defaults to `false`.",
		},
		"deduplication_scope": schema.StringAttribute{
			Optional: true, Validators: oneOf(topology.DeduplicationScopes()), MarkdownDescription: "On a FIFO queue, within what messages are deduplicated: `queue` (the default) or `messageGroup`.",
		},
		"throughput_limit": schema.StringAttribute{
			Optional: true, Validators: oneOf(topology.ThroughputLimits()),
			MarkdownDescription: "On a FIFO queue, what the limit on its throughput counts: `perQueue` (the default) or `perMessageGroupId`, which takes `deduplication_scope = \"messageGroup\"`.",
		},
		"policy": schema.StringAttribute{
			Optional: true, MarkdownDescription: "The queue's access policy in JSON, for what sends to it from elsewhere, such as SNS or S3. Compared by meaning. Defaults to none: the account's own IAM policies decide.",
		},
		"tags": schema.MapAttribute{
			Optional: true, ElementType: types.StringType, MarkdownDescription: "The queue's tags, over the provider's `sqs.default_tags`.",
		},
		"tags_all": schema.MapAttribute{
			Computed: true, ElementType: types.StringType, MarkdownDescription: "All tags that the queue has, the provider's `sqs.default_tags` included. A difference is drift, and repaired in place.",
		},
		"delete_non_empty": schema.BoolAttribute{
			Optional: true, Computed: true, Default: booldefault.StaticBool(false),
			MarkdownDescription: "Delete or replace " + object + " although messages are in it, or although another queue redrives to it: those messages are lost. Defaults to `false`. Before a plain destroy it takes an apply of its own.",
		},
		"adopt_existing": schema.BoolAttribute{
			Optional: true, Computed: true, Default: booldefault.StaticBool(false),
			MarkdownDescription: "On create, take over " + object + " if it exists, and set what differs, instead of refusing. Defaults to `false`.",
		},
		"arn": schema.StringAttribute{Computed: true, MarkdownDescription: "The queue's ARN."},
		"url": schema.StringAttribute{Computed: true, MarkdownDescription: "The queue's URL."},
		"attributes": schema.MapAttribute{
			Computed: true, ElementType: types.StringType,
			MarkdownDescription: "Every attribute of the queue that is managed, by SQS's names: what SQS has, and in a plan what the configuration computes. A difference is drift, and repaired in place.",
		},
		"timeouts": sqsTimeouts(ctx),
	}
	maps.Copy(attributes, own)
	return attributes
}

func sqsTimeouts(ctx context.Context) schema.Attribute {
	otherwise := " Defaults to `" + topology.FormatDuration(sqsTimeout) + "`."
	attribute := timeouts.Attributes(ctx, timeouts.Opts{
		Create: true, CreateDescription: "How long a create may take, with the minute in which the name of a deleted queue cannot be used and until SQS shows the queue." + otherwise,
		Update: true, UpdateDescription: "How long an update may take until SQS shows it." + otherwise,
		Delete: true, DeleteDescription: "How long a delete may take, counting the queue's messages and until SQS no longer shows it." + otherwise,
	})
	if nested, ok := attribute.(schema.SingleNestedAttribute); ok {
		nested.MarkdownDescription = "How long operations may take, as durations such as `10m`."
		return nested
	}
	return attribute
}

// nullSQSPart is a model in which nothing is set, in the types that the framework wants.
func nullSQSPart() sqsPartModel {
	return sqsPartModel{
		FIFO: types.BoolValue(false), DeleteNonEmpty: types.BoolValue(false), AdoptExisting: types.BoolValue(false),
		Tags: types.MapNull(types.StringType), TagsAll: types.MapNull(types.StringType), Attributes: types.MapNull(types.StringType),
		Timeouts: timeouts.Value{Object: types.ObjectNull(map[string]attr.Type{"create": types.StringType, "update": types.StringType, "delete": types.StringType})},
	}
}

// resolve fills in what the configuration leaves to the provider's defaults. known is false while any of it is not known.
func (m *sqsPartModel) resolve(rt *runtime, state *sqsPartModel) (known bool) {
	part := func(m *sqsPartModel) *partModel {
		return &partModel{VHost: types.StringValue(topology.DefaultVHost), Convention: m.Convention, ConsumerGroup: m.ConsumerGroup}
	}
	resolved, before := part(m), (*partModel)(nil)
	if state != nil {
		before = part(state)
	}
	known = resolved.resolve(rt, before)
	m.Convention, m.ConsumerGroup = resolved.Convention, resolved.ConsumerGroup
	return known && !m.FIFO.IsUnknown()
}

// settle is resolve once everything can be known: what the plan knew is kept.
func (m *sqsPartModel) settle(rt *runtime) (known bool) {
	for _, attribute := range []*types.String{&m.Convention, &m.ConsumerGroup} {
		if attribute.IsUnknown() {
			*attribute = types.StringNull()
		}
	}
	return m.resolve(rt, nil)
}

// identityOf is the identity that state or a finished plan holds, but for where it is.
func (m *sqsPartModel) identityOf(topic types.String) topology.SQSIdentity {
	return topology.SQSIdentity{
		Topic: topic.ValueString(), Convention: topology.Convention(m.Convention.ValueString()), ConsumerGroup: m.ConsumerGroup.ValueString(), FIFO: m.FIFO.ValueBool(),
	}
}

// params are the import id's parameters that tell the identity from the default.
func (m *sqsPartModel) params() map[string]string {
	part := partModel{Convention: m.Convention, ConsumerGroup: m.ConsumerGroup}
	return part.params()
}

// settings reads the configured settings of the queue, its tags among them. known is false while any of them is not known,
// but for its access policy and its tags, on which nothing else depends: they are left out then.
func (m *sqsPartModel) settings(ctx context.Context, diags *diag.Diagnostics) (q topology.SQSQueueSettings, known bool) {
	for _, value := range []attr.Value{
		m.VisibilityTimeout, m.Retention, m.Delay, m.ReceiveWait, m.MaxMessageSize, m.Encryption, m.KMSKey, m.KMSDataKeyReuse,
		m.ContentBasedDeduplication, m.DeduplicationScope, m.ThroughputLimit,
	} {
		if value.IsUnknown() {
			return q, false
		}
	}
	return topology.SQSQueueSettings{
		VisibilityTimeout: lengthOf(path.Root("visibility_timeout"), m.VisibilityTimeout, "every message would be received again at once", diags),
		Retention:         lengthOf(path.Root("retention"), m.Retention, "SQS keeps messages a minute at least", diags),
		Delay:             lengthOf(path.Root("delay"), m.Delay, "", diags),
		ReceiveWait:       lengthOf(path.Root("receive_wait"), m.ReceiveWait, "", diags),
		MaxMessageSize:    int(m.MaxMessageSize.ValueInt64()),
		SSE:               m.Encryption.ValueString(), KMSKey: m.KMSKey.ValueString(),
		KMSDataKeyReuse:           lengthOf(path.Root("kms_data_key_reuse"), m.KMSDataKeyReuse, "SQS uses a data key for a minute at least", diags),
		ContentBasedDeduplication: m.ContentBasedDeduplication.ValueBool(),
		DeduplicationScope:        m.DeduplicationScope.ValueString(), ThroughputLimit: m.ThroughputLimit.ValueString(),
		Policy: m.AccessPolicy.ValueString(), Tags: mapOf(ctx, m.TagsAll),
	}, true
}

// lengthOf reads a duration; 0 where there is none. A zero that is written is refused for the reason noZero, unless that is "".
func lengthOf(at path.Path, text types.String, noZero string, diags *diag.Diagnostics) time.Duration {
	if text.IsNull() {
		return 0
	}
	d, err := topology.ParseDuration(text.ValueString())
	if err == nil && d == 0 && noZero != "" {
		err = fmt.Errorf("%s is 0s: %s; leave it out for the default", at, noZero)
	}
	if err != nil {
		diags.AddAttributeError(at, "Invalid duration", sentence(err))
	}
	return d
}

// recogniseSettings fills in the settings of a queue that is being imported: those that are not what they are by default.
func (m *sqsPartModel) recogniseSettings(live topology.SQSAttributes, role topology.Role) {
	q := topology.SQSSettingsOf(live, role)
	length := func(d time.Duration) types.String {
		if d == 0 {
			return types.StringNull()
		}
		return types.StringValue(topology.FormatDuration(d))
	}
	m.VisibilityTimeout, m.Retention, m.Delay = length(q.VisibilityTimeout), length(q.Retention), length(q.Delay)
	m.ReceiveWait, m.KMSDataKeyReuse = length(q.ReceiveWait), length(q.KMSDataKeyReuse)
	if q.MaxMessageSize != 0 {
		m.MaxMessageSize = types.Int64Value(int64(q.MaxMessageSize))
	}
	m.Encryption, m.KMSKey, m.AccessPolicy = optionalText(q.SSE), optionalText(q.KMSKey), optionalText(q.Policy)
	if q.ContentBasedDeduplication {
		m.ContentBasedDeduplication = types.BoolValue(true)
	}
	m.DeduplicationScope, m.ThroughputLimit = optionalText(q.DeduplicationScope), optionalText(q.ThroughputLimit)
}

// recogniseTags fills in the tags of a queue that is being imported: those that no default tag explains.
func (m *sqsPartModel) recogniseTags(rt *runtime, live map[string]string) {
	own := maps.Clone(live)
	for key, value := range rt.sqs.defaultTags.Elements() {
		if text, ok := value.(types.String); ok && own[key] == text.ValueString() {
			delete(own, key)
		}
	}
	if len(own) > 0 {
		m.Tags = stringMap(own)
	}
}
