package topology

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"
)

// sqsContract is a golden file of testdata/contract/sqs: everything that one topic on SQS computes.
type sqsContract struct {
	WorkQueue   string                         `json:"work_queue"`
	Attributes  map[string]SQSAttributes       `json:"attributes"`
	IAMPolicies map[AccessRole]json.RawMessage `json:"iam_policies"`
	Manifest    json.RawMessage                `json:"manifest"`
}

func TestSQSContract(t *testing.T) {
	t.Parallel()
	for _, tc := range sqsCases(t) {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m := sqsManifestOf(t, tc.spec)
			if back, err := DecodeManifest(m.Encode()); err != nil || !bytes.Equal(back.Encode(), m.Encode()) {
				t.Errorf("the manifest does not read back as it was written: %v", err)
			}
			work, err := tc.spec.Attributes()
			if err != nil {
				t.Fatal(err)
			}
			file := sqsContract{
				WorkQueue: tc.spec.WorkQueueName(), Attributes: map[string]SQSAttributes{tc.spec.WorkQueueName(): work},
				IAMPolicies: map[AccessRole]json.RawMessage{}, Manifest: m.Encode(),
			}
			for _, end := range tc.ends {
				attributes, err := end.Attributes()
				if err != nil {
					t.Fatal(err)
				}
				file.Attributes[end.QueueName()] = attributes
			}
			for _, role := range AccessRoles() {
				document, _, err := IAMPolicy(m, role)
				if err != nil {
					t.Fatal(err)
				}
				file.IAMPolicies[role] = json.RawMessage(document)
			}
			var text bytes.Buffer
			enc := json.NewEncoder(&text)
			enc.SetEscapeHTML(false)
			enc.SetIndent("", "  ")
			if err := enc.Encode(file); err != nil {
				t.Fatal(err)
			}
			golden(t, filepath.Join("testdata", "contract", "sqs", tc.name+".json"), text.Bytes())
			picture := m.Mermaid()
			golden(t, filepath.Join("testdata", "graph", "sqs_"+tc.name+".mmd"), []byte(picture))
			plainMermaid(t, picture)
		})
	}
}
