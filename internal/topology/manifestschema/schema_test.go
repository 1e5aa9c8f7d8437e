package manifestschema

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

const committed = "../../../schemas/manifest.v1.json"

func TestCommittedSchemaIsGenerated(t *testing.T) {
	t.Parallel()
	want, err := Generate("..")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(committed)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("schemas/manifest.v1.json is not what the Go types give: run go generate ./internal/topology/...")
	}
}

func compile(t *testing.T) *jsonschema.Schema {
	t.Helper()
	text, err := os.ReadFile(committed)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource(ID, doc); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile(ID)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// goldenManifests are the manifests of the contract's golden files, by convention and case.
func goldenManifests(t *testing.T) map[string]json.RawMessage {
	t.Helper()
	files, err := filepath.Glob("../testdata/contract/*.json")
	if err != nil || len(files) != len(topology.Conventions()) {
		t.Fatalf("golden files %v, %v", files, err)
	}
	manifests := map[string]json.RawMessage{}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var file struct {
			Convention string
			Cases      []struct {
				Name     string
				Manifest json.RawMessage
			}
		}
		if err := json.Unmarshal(text, &file); err != nil {
			t.Fatal(err)
		}
		for _, c := range file.Cases {
			manifests[file.Convention+", "+c.Name] = c.Manifest
		}
	}
	onSQS, err := filepath.Glob("../testdata/contract/sqs/*.json")
	if err != nil || len(onSQS) == 0 {
		t.Fatalf("golden files %v, %v", onSQS, err)
	}
	for _, path := range onSQS {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var file struct{ Manifest json.RawMessage }
		if err := json.Unmarshal(text, &file); err != nil {
			t.Fatal(err)
		}
		manifests["sqs, "+strings.TrimSuffix(filepath.Base(path), ".json")] = file.Manifest
	}
	return manifests
}

func TestGoldenManifestsAreValid(t *testing.T) {
	t.Parallel()
	schema := compile(t)
	for name, text := range goldenManifests(t) {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(doc); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What the schema must refuse, so that an editor shows it before a consumer does.
func TestSchemaRefuses(t *testing.T) {
	t.Parallel()
	refuses(t, "redeliver, hybrid", map[string][2]string{
		"newer version":         {`"version": 1`, `"version": 2`},
		"broker":                {`"rabbitmq"`, `"kafka"`},
		"unknown field":         {`"topic": "orders"`, `"topic": "orders", "color": 1`},
		"unknown field, nested": {`"max_retries"`, `"color": 1, "max_retries"`},
		"missing field":         {`"topic": "orders",`, ``},
		"convention":            {`"convention": "redeliver"`, `"convention": "other"`},
		"strategy":              {`"strategy": "hybrid"`, `"strategy": "other"`},
		"type":                  {`"type": "quorum"`, `"type": "stream"`},
		"park":                  {`"park": "reject"`, `"park": "drop"`},
		"final":                 {`"final": "broker"`, `"final": "drop"`},
		"duration as a number":  {`"hold_from": "30s"`, `"hold_from": 30`},
		"duration, not written": {`"hold_from": "30s"`, `"hold_from": ""`},
		"duration, order":       {`"hold_from": "30s"`, `"hold_from": "30s1m"`},
		"duration, zero":        {`"hold_from": "30s"`, `"hold_from": "0s"`},
		"negative retries":      {`"max_retries": 10`, `"max_retries": -1`},
		"jitter":                {`"jitter": 0.2`, `"jitter": 1`},
		"fingerprint":           {`"sha256:`, `"md5:`},
		"null list":             {`"bindings": []`, `"bindings": null`},
		"null object":           {`"headers": {`, `"headers": null, "was": {`},
		"empty name":            {`"name": "orders"`, `"name": ""`},
		"no vhost":              {`"vhost": "/",`, ``},
		"empty vhost":           {`"vhost": "/"`, `"vhost": ""`},
		"no arguments":          {`"arguments"`, `"url"`},
		"what SQS has":          {`"type": "quorum"`, `"type": "quorum", "url": "https://sqs"`},
		"a type of SQS":         {`"type": "quorum"`, `"type": "fifo"`},
	})
	refuses(t, "sqs, standard_send_parked", map[string][2]string{
		"vhost":               {`"topic": "orders"`, `"vhost": "/", "topic": "orders"`},
		"no url":              {`"url"`, `"color"`},
		"no arn":              {`"arn"`, `"color"`},
		"no attributes":       {`"attributes"`, `"arguments"`},
		"a number":            {`"VisibilityTimeout": "120"`, `"VisibilityTimeout": 120`},
		"a type of RabbitMQ":  {`"type": "standard"`, `"type": "quorum"`},
		"what RabbitMQ has":   {`"type": "standard"`, `"type": "standard", "arguments": {}`},
		"RabbitMQ's manifest": {`"broker": "sqs"`, `"broker": "rabbitmq"`},
	})
}

// refuses fails unless the schema, and the decoder with it, refuse a golden manifest after each of the replacements.
func refuses(t *testing.T, golden string, replacements map[string][2]string) {
	t.Helper()
	schema := compile(t)
	good := string(goldenManifests(t)[golden])
	for name, replacement := range replacements {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(good, replacement[0], replacement[1], 1)
			if text == good {
				t.Fatalf("the manifest has no %q", replacement[0])
			}
			doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			if schema.Validate(doc) == nil {
				t.Errorf("valid after %q became %q", replacement[0], replacement[1])
			}
			if _, err := topology.DecodeManifest([]byte(text)); err == nil {
				t.Errorf("the decoder accepts what the schema refuses: %q", replacement[1])
			}
		})
	}
}

// Every field says what it is, and no object takes fields that nobody knows.
func TestEveryFieldIsDescribed(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(committed)
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	if n := described(t, "", schema); n < 50 {
		t.Errorf("%d fields were looked at", n)
	}
}

func described(t *testing.T, path string, schema map[string]any) int {
	t.Helper()
	fields := 0
	properties, isObject := schema["properties"].(map[string]any)
	if isObject && schema["additionalProperties"] != false {
		t.Errorf("%q takes unknown fields", path)
	}
	for name, value := range properties {
		property := value.(map[string]any)
		title, _ := property["title"].(string)
		description, _ := property["description"].(string)
		if title == "" || !strings.HasSuffix(description, ".") || strings.ContainsAny(description, "[]") {
			t.Errorf("%s%s has title %q and description %q", path, name, title, description)
		}
		fields += 1 + described(t, path+name+".", property)
	}
	if items, ok := schema["items"].(map[string]any); ok {
		fields += described(t, path+"[].", items)
	}
	return fields
}

func TestGenerateNeedsTheSource(t *testing.T) {
	t.Parallel()
	if _, err := Generate(t.TempDir()); err == nil || !strings.Contains(err.Error(), "doc comment") {
		t.Errorf("without source: %v", err)
	}
}
