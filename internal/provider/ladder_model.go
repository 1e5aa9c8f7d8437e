package provider

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

type holdLadderModel struct {
	partModel
	Topic               types.String   `tfsdk:"topic"`
	AcknowledgeWarnings types.Set      `tfsdk:"acknowledge_warnings"`
	Delays              types.List     `tfsdk:"delays"`
	JitterShards        types.Int64    `tfsdk:"jitter_shards"`
	JitterFactor        types.Float64  `tfsdk:"jitter_factor"`
	SequenceShards      types.Int64    `tfsdk:"sequence_shards"`
	Queues              types.List     `tfsdk:"queues"`
	Arguments           types.Map      `tfsdk:"arguments"`
	Policies            types.Map      `tfsdk:"policies"`
	Bindings            types.Set      `tfsdk:"bindings"`
	Timeouts            timeouts.Value `tfsdk:"timeouts"`
}

type holdRefModel struct {
	Delay types.String `tfsdk:"delay"`
	Name  types.String `tfsdk:"name"`
	Shard types.Int64  `tfsdk:"shard"`
}

var holdRefType = types.ObjectType{AttrTypes: map[string]attr.Type{
	"delay": types.StringType, "name": types.StringType, "shard": types.Int64Type,
}}

// durations reads a list of durations; known is false where any is not known yet.
func durations(ctx context.Context, list types.List) (delays []time.Duration, known bool, err error) {
	if list.IsUnknown() {
		return nil, false, nil
	}
	var texts []types.String
	list.ElementsAs(ctx, &texts, false)
	for i, text := range texts {
		if text.IsUnknown() {
			return nil, false, nil
		}
		if text.IsNull() {
			return nil, true, fmt.Errorf("delay number %d is null: leave it out, or write it as 500ms, 5s, 2m, 1h30m or 1d", i+1)
		}
		delay, err := topology.ParseDuration(text.ValueString())
		if err != nil {
			return nil, true, err
		}
		delays = append(delays, delay)
	}
	return delays, true, nil
}

func holdRefList(refs []topology.HoldRef) types.List {
	elements := make([]attr.Value, len(refs))
	for i, ref := range refs {
		elements[i] = types.ObjectValueMust(holdRefType.AttrTypes, map[string]attr.Value{
			"delay": types.StringValue(topology.FormatDuration(ref.Delay)), "name": types.StringValue(ref.Name), "shard": types.Int64Value(int64(ref.Shard)),
		})
	}
	return types.ListValueMust(holdRefType, elements)
}

func ladderArguments(m *holdLadderModel) map[string]map[string]string {
	return argumentsByQueue(context.Background(), m.Arguments)
}

// ownedQueues are the hold queues that the state knows: those it last saw and those it computes.
func ownedQueues(m *holdLadderModel) []string {
	names := map[string]bool{}
	for name := range m.Arguments.Elements() {
		names[name] = true
	}
	for _, element := range m.Queues.Elements() {
		if object, ok := element.(types.Object); ok {
			if name, ok := object.Attributes()["name"].(types.String); ok {
				names[name.ValueString()] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}
