package verify

import (
	"context"
	"testing"

	"github.com/redeliver/terraform-provider-redeliver/internal/sqsadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// TestDeadEndsOfSQS: what a manifest does not say of a dead end is judged by what becomes of messages.
func TestDeadEndsOfSQS(t *testing.T) {
	t.Parallel()
	spec := topology.SQSSpec{
		SQSIdentity:     topology.SQSIdentity{Topic: "orders", Region: "eu-central-1", Account: "123456789012"},
		DeadLetterQueue: "orders-dlq", ParkedQueue: "orders-parked", Retry: topology.RetryPolicy{Strategy: topology.InPlace},
	}
	m, err := spec.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	kept := func(more topology.SQSAttributes) topology.SQSAttributes {
		out := topology.SQSAttributes{topology.AttrRetention: "1209600"}
		for name, value := range more {
			out[name] = value
		}
		return out
	}
	allow := func(policy string) topology.SQSAttributes {
		return kept(topology.SQSAttributes{topology.AttrRedriveAllowPolicy: policy})
	}
	for name, test := range map[string]struct {
		dead, parked topology.SQSAttributes
		want         string // of the first difference of a dead end
	}{
		"in order":         {kept(nil), kept(nil), ""},
		"all may":          {allow(`{"redrivePermission":"allowAll"}`), kept(nil), ""},
		"the work queue":   {allow(`{"redrivePermission":"byQueue","sourceQueueArns":["arn:aws:sqs:eu-central-1:123456789012:orders"]}`), kept(nil), ""},
		"another queue":    {allow(`{"redrivePermission":"byQueue","sourceQueueArns":["arn:aws:sqs:eu-central-1:123456789012:other"]}`), kept(nil), topology.AttrRedriveAllowPolicy},
		"nobody":           {allow(`{"redrivePermission":"denyAll"}`), kept(nil), topology.AttrRedriveAllowPolicy},
		"parked, nobody":   {kept(nil), allow(`{"redrivePermission":"denyAll"}`), ""},
		"another type":     {kept(nil), kept(topology.SQSAttributes{topology.AttrFIFO: "true"}), topology.AttrFIFO},
		"kept too shortly": {kept(topology.SQSAttributes{topology.AttrRetention: "345599"}), kept(nil), topology.AttrRetention},
		"as long":          {topology.SQSAttributes{}, topology.SQSAttributes{}, ""},
	} {
		live := map[string]topology.SQSAttributes{"orders": m.WorkQueue.Attributes, "orders-dlq": test.dead, "orders-parked": test.parked}
		r, err := SQS(t.Context(), func(_ context.Context, q topology.ManifestQueue) (sqsadmin.LiveQueue, error) {
			return sqsadmin.LiveQueue{Attributes: live[q.Name]}, nil
		}, m)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, o := range r.Objects {
			if len(o.Differences) > 0 && got == "" {
				got = o.Differences[0].Key
			}
		}
		if got != test.want || r.InOrder() != (test.want == "") {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
