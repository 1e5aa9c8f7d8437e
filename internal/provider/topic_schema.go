package provider

import (
	"context"
	"fmt"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework-validators/float64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

func (*topicResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	bindingAttributes := func(computed bool) schema.NestedAttributeObject {
		return schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"exchange":    schema.StringAttribute{Required: !computed, Computed: computed, MarkdownDescription: "The exchange."},
			"routing_key": schema.StringAttribute{Required: !computed, Computed: computed, MarkdownDescription: "The routing key; `\"\"` for a fanout exchange."},
		}}
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "A topic: one logical stream of one message type. On the broker it is the work queue that applications consume, with the dead-letter route, " +
			"the delivery limit and the bindings that belong to it. Its `manifest` is what a consumer binds to.",
		Attributes: partAttributes("the work queue", "VHOST/TOPIC?convention=...&consumer_group=...", map[string]schema.Attribute{
			"name": schema.StringAttribute{
				Required: true, Validators: nameOf("topic"),
				MarkdownDescription: "The topic's name, which is also its work queue's. Changing it replaces the queue.",
			},
			"queue_type": schema.StringAttribute{
				Optional: true, Computed: true, Validators: oneOf([]topology.QueueType{topology.Quorum, topology.Classic}),
				MarkdownDescription: "The work queue's type: `quorum` or `classic`. Defaults to the convention's; only `rabbitkit` leaves a choice. Changing it replaces the queue (with `on_argument_change = \"migrate\"`: in place).",
			},
			"dead_letter_queue": schema.StringAttribute{
				Optional: true, Validators: nameOf("dead-letter queue"),
				MarkdownDescription: "The name of the queue for messages that failed for good: the `name` of a `redeliver_rabbitmq_dead_letter_queue`. " +
					"A topic without one is refused unless `allow_message_loss` is true. Changing it replaces the queue; in place with `settings_via = \"policy\"` or `on_argument_change = \"migrate\"`.",
			},
			"parked_queue": schema.StringAttribute{
				Optional: true, Validators: nameOf("parked queue"),
				MarkdownDescription: "The name of the queue for messages that nobody could read: the `name` of a `redeliver_rabbitmq_parked_queue`.",
			},
			"hold_queues": schema.ListNestedAttribute{
				Optional: true, Validators: []validator.List{listvalidator.SizeAtLeast(1)},
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"delay": schema.StringAttribute{Required: true, Validators: durationText(), MarkdownDescription: "How long the queue holds a message."},
					"name":  schema.StringAttribute{Required: true, MarkdownDescription: "The queue's name."},
					"shard": schema.Int64Attribute{Optional: true, MarkdownDescription: "The sub-queue's number where the tier is split, or the shard that it belongs to. Defaults to 0."},
				}},
				MarkdownDescription: "The topic's ladder: the `queues` of a `redeliver_rabbitmq_hold_ladder`. The topic's delays come from here.",
			},
			"retry": schema.SingleNestedAttribute{
				Optional: true, Computed: true,
				MarkdownDescription: "The retry policy. It is carried out by consumers: changing it changes the manifest, and the queue only where its delivery limit follows from `max_retries` or the broker delays what is retried.",
				Attributes: map[string]schema.Attribute{
					"strategy": schema.StringAttribute{
						Optional: true, Computed: true, Validators: oneOf(topology.Strategies()),
						MarkdownDescription: "Where a retry waits: `in_place` (in the consumer; the default), `broker_delayed` (in the work queue itself, which RabbitMQ " + topology.BrokerDelayedSince + " and later can delay), " +
							"`republish` (in a hold queue) or `hybrid` (in place below `hold_from`, in a hold queue at or above). The first two need read permission only, the others publish a copy. " +
							"Changing to or from `broker_delayed` replaces the queue; in place with `settings_via = \"policy\"` or `on_argument_change = \"migrate\"`.",
					},
					"max_retries": schema.Int64Attribute{
						Optional: true, Computed: true, Validators: []validator.Int64{int64validator.AtLeast(0)},
						MarkdownDescription: fmt.Sprintf("How many retries are honoured: a message that always fails is handed to a handler once more than that, then dead-lettered. Defaults to `%d`. "+
							"On a classic queue and in a sequenced topic all retries of a message that wait in the consumer live in one delivery: together they have to fit into three quarters of the consumer timeout.", topology.DefaultMaxRetries),
					},
					"delays": schema.ListAttribute{
						Optional: true, Computed: true, ElementType: types.StringType, Validators: []validator.List{listvalidator.ValueStringsAre(duration)},
						MarkdownDescription: "The delays, shortest first; the last one repeats. With `hold_queues` they come from there, and setting both is an error.",
					},
					"delay_min": schema.StringAttribute{
						Optional: true, Validators: durationText(),
						MarkdownDescription: "What `broker_delayed` has instead of `delays`: a message waits `delay_min` times its retries, at most `delay_max`. Changing it replaces the queue; in place with `settings_via = \"policy\"` or `on_argument_change = \"migrate\"`.",
					},
					"delay_max": schema.StringAttribute{
						Optional: true, Validators: durationText(),
						MarkdownDescription: "The longest wait under `broker_delayed`. Changing it replaces the queue; in place with `settings_via = \"policy\"` or `on_argument_change = \"migrate\"`.",
					},
					"last_delay_repeats": schema.BoolAttribute{
						Optional:            true,
						MarkdownDescription: "Allow fewer delays than retries where each attempt has a hold queue of its own (`rabbitkit`). Defaults to `false`.",
					},
					"hold_from": schema.StringAttribute{
						Optional: true, Computed: true, Validators: durationText(),
						MarkdownDescription: "The shortest delay that the `hybrid` strategy waits in a hold queue. Defaults to `" + topology.FormatDuration(topology.DefaultHoldFrom) + "`.",
					},
					"give_up_after": schema.StringAttribute{
						Optional: true, Validators: durationText(),
						MarkdownDescription: "The age at which a message is retried no more, whatever retries are left. A message of unknown age is young. Never by default.",
					},
					"jitter": schema.Float64Attribute{
						Optional: true, Computed: true, Validators: []validator.Float64{float64validator.Between(0, 1)},
						MarkdownDescription: fmt.Sprintf("The factor by which waits in the consumer vary both ways, from 0 to below 1. Defaults to `%v`.", topology.DefaultJitter),
					},
				},
			},
			"sequenced": schema.BoolAttribute{
				Optional: true, Computed: true, Default: booldefault.StaticBool(false),
				MarkdownDescription: "Keep messages of one key in order, also while they are retried: the work queue gets `x-single-active-consumer`, and only the strategy `in_place` is allowed. Which key a message has is the consumer's to say. " +
					"Under `acemq` and `rabbitkit` an application that declares the queue itself has to declare the argument too; `queuey` cannot. Defaults to `false`. Changing it replaces the queue.",
			},
			"sequence_shards": schema.Int64Attribute{
				Optional: true, Validators: []validator.Int64{int64validator.Between(1, topology.MaxSequenceShards)},
				MarkdownDescription: "How many queues a sequenced topic is spread over under `shove`, which needs it: `orders-seq-0` and so on, bound to the exchange `orders-seq-hash`, which picks one by the hash of the routing key. " +
					"There is no queue of the topic's own name then. What applications declare has as many (`routing_shards`, 8 unless they say otherwise). " +
					"Needs RabbitMQ's plugin `" + topology.ConsistentHashPlugin + "`. Changing it replaces the queues, since keys would move from one to another.",
			},
			"park": schema.StringAttribute{
				Optional: true, Computed: true, Validators: oneOf([]topology.ParkMode{topology.ParkReject, topology.ParkPublish}),
				MarkdownDescription: "How a consumer that settles in place parks a message: `reject` (dead-letter it, which needs no write permission; the default) or `publish` (publish it to the parked queue). Consumers that `republish` publish where there is a parked queue.",
			},
			"delivery_limit": schema.Int64Attribute{
				Optional: true, Validators: []validator.Int64{int64validator.AtLeast(1)},
				MarkdownDescription: "The work queue's `x-delivery-limit`, a backstop against crash loops and not the retry budget. Under the `redeliver` convention it defaults to the smallest of 50, 100, 200, 500 and 1000 " +
					"that is at least `max_retries` + 10. Changing it replaces the queue; in place with `settings_via = \"policy\"` or `on_argument_change = \"migrate\"`.",
			},
			"max_priority": schema.Int64Attribute{
				Optional: true, Validators: []validator.Int64{int64validator.Between(0, 255)},
				MarkdownDescription: "The work queue's `x-max-priority`, on a classic queue. Defaults to 10 under `queuey` and to none elsewhere; `0` is none. Changing it replaces the queue (with `on_argument_change = \"migrate\"`: in place).",
			},
			"allow_message_loss": schema.BoolAttribute{
				Optional: true, Computed: true, Default: booldefault.StaticBool(false),
				MarkdownDescription: "Accept a topic without a dead-letter queue, whose rejected and exhausted messages are discarded. Defaults to `false`.",
			},
			"bindings": schema.SetNestedAttribute{
				Optional: true, NestedObject: bindingAttributes(false),
				MarkdownDescription: "Where the topic's messages come from. Not authoritative: bindings made elsewhere stay. Bindings with arguments are `redeliver_rabbitmq_binding` resources. " +
					"With `sequence_shards` they lead to the exchange that spreads messages over the shards, and a message's routing key is its key.",
			},
			"acknowledge_warnings": warningsAttribute(warningForeignDeadEnd, warningUnusedParkedQueue, warningUnusedHoldQueues, warningClassicInPlace, warningPolicy, warningDefaultType, warningCycle),
			"arguments":            argumentsAttribute("the work queue"),
			"shard_arguments": schema.MapAttribute{
				Computed: true, ElementType: queueArgumentsType,
				MarkdownDescription: "With `sequence_shards`, what `arguments` is without: every argument of every shard, by queue and name. A shard that is missing on the broker is missing here, and made again in place.",
			},
			"policy": policyAttribute("the work queue"),
			"shard_policies": schema.MapAttribute{
				Computed: true, ElementType: queueArgumentsType,
				MarkdownDescription: "With `sequence_shards`, what `policy` is without, by queue.",
			},
			"home_bindings": schema.SetNestedAttribute{
				Computed: true, NestedObject: bindingAttributes(true),
				MarkdownDescription: "The bindings that the convention itself needs, such as the one that leads expired messages home under `acemq`, or that of every shard under `shove`. One that is missing on the broker shows as drift.",
			},
			"manifest": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "The manifest that a consumer binds to, as JSON: known at plan time, computed from the configuration, without secrets. Hand it to applications as a file, an environment variable or a parameter.",
			},
		}),
	}
	maps.Copy(resp.Schema.Attributes, migrateAttributes(ctx, "the work queue"))
}
