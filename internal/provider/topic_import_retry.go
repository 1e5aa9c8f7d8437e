package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// recogniseRetry gives a topic that is being imported a retry policy where the default one is none that it can have. The
// broker does not know how often consumers retry: what is chosen is the first policy that fits what is there, so that the
// configuration which the command line writes down is valid, and says what to look at.
func (m *topicModel) recogniseRetry(ctx context.Context) {
	if m.DeadLetterQueue.IsNull() {
		m.AllowMessageLoss = types.BoolValue(true) // so it is, whatever anybody allows
	}
	if !m.Retry.IsNull() {
		return
	}
	tiers := 0
	for _, ref := range m.holdRefs(ctx) {
		if ref.Shard.ValueInt64() == 0 {
			tiers++
		}
	}
	for _, policy := range []struct {
		strategy   topology.Strategy
		maxRetries int
	}{
		{"", topology.DefaultMaxRetries},
		{topology.Republish, topology.DefaultMaxRetries},
		// One hold queue for each attempt, as some conventions have it.
		{"", tiers},
		{topology.Republish, tiers},
		{"", 0},
	} {
		tried := *m
		if policy.strategy != "" || policy.maxRetries != topology.DefaultMaxRetries {
			tried.Retry = retriedTimes(policy.strategy, policy.maxRetries)
		}
		var unsaid diag.Diagnostics
		if spec, known := tried.spec(ctx, &unsaid); known && !unsaid.HasError() && spec.Validate() == nil {
			m.Retry = tried.Retry
			return
		}
	}
}

// retriedTimes is the retry policy of a topic whose messages are retried so often; "" leaves the strategy to the default.
func retriedTimes(strategy topology.Strategy, maxRetries int) types.Object {
	return types.ObjectValueMust(retryAttrTypes, map[string]attr.Value{
		"strategy": optionalText(string(strategy)), "max_retries": types.Int64Value(int64(maxRetries)),
		"delays": types.ListNull(types.StringType), "delay_min": types.StringNull(), "delay_max": types.StringNull(),
		"last_delay_repeats": types.BoolNull(), "hold_from": types.StringNull(), "give_up_after": types.StringNull(), "jitter": types.Float64Null(),
	})
}

// delaysOf are the delays of the topic's hold queues as retry.delays has them; null without any, or while one is not known.
func (m *topicModel) delaysOf() types.List {
	var delays []attr.Value
	for _, ref := range m.holdRefs(context.Background()) {
		if ref.Shard.ValueInt64() == 0 {
			delays = append(delays, ref.Delay)
		}
	}
	if len(delays) == 0 || !allKnown(delays) {
		return types.ListNull(types.StringType)
	}
	return types.ListValueMust(types.StringType, delays)
}
