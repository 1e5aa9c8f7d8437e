package provider

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// importDelays fills in the tiers of a ladder whose import id says them: where the convention numbers its hold queues, one
// that is missing leaves a gap whose delay only people know. What is missing then shows as drift, and is made in place.
func (r *holdLadderResource) importDelays(ctx context.Context, m *holdLadderModel, text string) error {
	if text == "" {
		return nil
	}
	delays := strings.Split(text, ",")
	values := make([]attr.Value, len(delays))
	for i, delay := range delays {
		values[i] = types.StringValue(strings.TrimSpace(delay))
	}
	m.Delays = types.ListValueMust(types.StringType, values)
	objects, err := r.objects(ctx, m, nil)
	m.Queues = holdRefList(objects.HoldRefs())
	return err
}

// warnOfGap says which hold queues of a topic an import leaves out, because it does not know what is missing before them.
func warnOfGap(m *holdLadderModel, queues []topology.Queue, refs []topology.HoldRef, diags *diag.Diagnostics) {
	id := m.identityOf(m.Topic)
	left := id.Unrecognised(queues, refs)
	if len(left) == 0 {
		return
	}
	var known, behind []time.Duration
	for _, ref := range refs {
		if ref.Shard == 0 {
			known = append(known, ref.Delay)
		}
	}
	for _, q := range queues {
		if ttl, ok := q.Arguments[topology.ArgMessageTTL].(int64); ok && slices.Contains(left, q.Name) {
			behind = append(behind, time.Duration(ttl)*time.Millisecond)
		}
	}
	slices.Sort(behind)
	diags.AddWarning(fmt.Sprintf("Hold queue %q is not imported", left[0]),
		fmt.Sprintf("In vhost %q topic %q also has these hold queues, and the ladder has a gap before them, or they are out of order: %s. The delay of what is missing cannot be told from the broker. "+
			"Say all delays in the import id, shortest first, what is missing in the place of %s, and the next apply makes that:\n  %s", id.VHost, id.Topic, quoted(left), missingDelay,
			importID{segments: []string{id.VHost, id.Topic}, params: m.params()}.withParam("delays", strings.Join(slices.Concat(delayTexts(known), []string{missingDelay}, delayTexts(behind)), ","))))
}

// missingDelay stands for a delay that only people know.
const missingDelay = "MISSING"

func delayTexts(delays []time.Duration) []string {
	out := make([]string, len(delays))
	for i, delay := range delays {
		out[i] = topology.FormatDuration(delay)
	}
	return out
}

// withParam is the identifier with one more parameter, whose value is written as it is.
func (id importID) withParam(name, value string) string {
	text := id.String()
	if strings.Contains(text, "?") {
		return text + "&" + name + "=" + value
	}
	return text + "?" + name + "=" + value
}
