package topology

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// allowed lists what a policy allows, as "action resource", with the condition where there is one.
func allowed(t *testing.T, document string) []string {
	t.Helper()
	var policy iamDocument
	if err := json.Unmarshal([]byte(document), &policy); err != nil {
		t.Fatal(err)
	}
	var out []string
	sids := map[string]bool{}
	for _, s := range policy.Statement {
		if s.Effect != "Allow" || s.Sid == "" || sids[s.Sid] || len(s.Action) == 0 || len(s.Resource) == 0 {
			t.Errorf("statement %+v", s)
		}
		sids[s.Sid] = true
		for _, action := range s.Action {
			for _, resource := range s.Resource {
				text := action + " " + resource
				if len(s.Condition) > 0 {
					text += " " + fmt.Sprint(s.Condition)
				}
				out = append(out, text)
			}
		}
	}
	return out
}

func TestIAMPolicy(t *testing.T) {
	t.Parallel()
	const here = "arn:aws:sqs:eu-central-1:123456789012:"
	receiving := func(queue string) []string {
		return []string{"sqs:ReceiveMessage " + here + queue, "sqs:DeleteMessage " + here + queue, "sqs:ChangeMessageVisibility " + here + queue}
	}
	with := func(change func(*SQSSpec)) Manifest {
		s := sqsPlain(t)
		change(&s)
		return sqsManifestOf(t, s)
	}
	key := func(key string) Manifest { return with(func(s *SQSSpec) { s.KMSKey = key }) }
	sending := with(func(s *SQSSpec) { s.DeadLetterVia, s.ParkedQueue = ViaSend, "orders-parked" })
	const exactKey = "arn:aws:kms:eu-central-1:123456789012:key/k"
	for name, tc := range map[string]struct {
		manifest Manifest
		role     AccessRole
		want     []string
		notes    []string
	}{
		"consumer":           {with(func(*SQSSpec) {}), AccessConsumer, receiving("orders"), nil},
		"consumer, parks":    {with(func(s *SQSSpec) { s.ParkedQueue = "bad" }), AccessConsumer, receiving("orders"), nil},
		"consumer, sends":    {sending, AccessConsumer, append(receiving("orders"), "sqs:SendMessage "+here+"orders-dlq", "sqs:SendMessage "+here+"orders-parked"), []string{`"orders-dlq"`, `"orders-parked"`, "kms:GenerateDataKey"}},
		"consumer, a key":    {key("k"), AccessConsumer, append(receiving("orders"), "kms:Decrypt "+exactKey), nil},
		"consumer, key ARN":  {key("arn:aws:kms:eu-west-1:999999999999:key/x"), AccessConsumer, append(receiving("orders"), "kms:Decrypt arn:aws:kms:eu-west-1:999999999999:key/x"), nil},
		"consumer, alias":    {key("alias/shop"), AccessConsumer, append(receiving("orders"), "kms:Decrypt arn:aws:kms:eu-central-1:123456789012:key/* map[ForAnyValue:StringEquals:map[kms:ResourceAliases:alias/shop]]"), nil},
		"consumer, alias of": {key("arn:aws:kms:eu-west-1:999999999999:alias/shop"), AccessConsumer, append(receiving("orders"), "kms:Decrypt arn:aws:kms:eu-west-1:999999999999:key/* map[ForAnyValue:StringEquals:map[kms:ResourceAliases:alias/shop]]"), nil},
		"consumer, AWS's":    {key("alias/aws/sqs"), AccessConsumer, receiving("orders"), nil},
		"publisher":          {with(func(*SQSSpec) {}), AccessPublisher, []string{"sqs:SendMessage " + here + "orders"}, nil},
		"publisher, a key":   {key("k"), AccessPublisher, []string{"sqs:SendMessage " + here + "orders", "kms:GenerateDataKey " + exactKey, "kms:Decrypt " + exactKey}, nil},
		"operator": {sending, AccessOperator, slices.Concat(
			receiving("orders-dlq"), []string{"sqs:StartMessageMoveTask " + here + "orders-dlq", "sqs:CancelMessageMoveTask " + here + "orders-dlq", "sqs:ListMessageMoveTasks " + here + "orders-dlq"},
			receiving("orders-parked"), []string{"sqs:SendMessage " + here + "orders"},
			[]string{"sqs:GetQueueAttributes " + here + "orders", "sqs:GetQueueAttributes " + here + "orders-dlq", "sqs:GetQueueAttributes " + here + "orders-parked"},
		), []string{"takes messages out of it", `"orders-parked"`, "kms:Decrypt to receive"}},
		"operator, nothing": {with(func(s *SQSSpec) { s.DeadLetterQueue, s.AllowMessageLoss = "", true }), AccessOperator, []string{"sqs:GetQueueAttributes " + here + "orders"}, []string{"nothing to look into"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			document, notes, err := IAMPolicy(tc.manifest, tc.role)
			if err != nil {
				t.Fatal(err)
			}
			if got := allowed(t, document); !slices.Equal(got, tc.want) {
				t.Errorf("allowed %q\nwant %q", got, tc.want)
			}
			if len(notes) != len(tc.notes) {
				t.Fatalf("notes %q", notes)
			}
			for i, note := range tc.notes {
				if !strings.Contains(notes[i], note) || !strings.HasSuffix(notes[i], ".") {
					t.Errorf("note %q does not say %q", notes[i], note)
				}
			}
			if canonical, err := CanonicalPolicy(document); err != nil || canonical == "" {
				t.Errorf("the document is no policy: %v", err)
			}
		})
	}
}

func TestIAMPolicyRefused(t *testing.T) {
	t.Parallel()
	_, _, err := IAMPolicy(sqsManifestOf(t, sqsPlain(t)), "admin")
	refused(t, err, `"admin"`, `"consumer", "publisher", "operator"`)
	_, _, err = IAMPolicy(manifestOf(t, plain(t, Redeliver)), AccessConsumer)
	refused(t, err, `"orders"`, "RabbitMQ", "build_permissions")
	_, err = Permissions(sqsManifestOf(t, sqsPlain(t)), AccessConsumer)
	refused(t, err, `"orders"`, "Amazon SQS", "build_iam_policy")
}
