// Package manifestschema writes the JSON Schema of the manifest from the Go
// types that encode it, so that the two cannot disagree. Descriptions are the
// doc comments of those types. Only the generator and tests import it: package
// topology itself depends on no schema library.
//
// Start reading at [Generate].
package manifestschema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect" //nolint:depguard // a schema of Go types is read off the types; only the generator and tests get here
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology" //nolint:depguard // nothing in topology imports this package
)

// ID is the schema's identity.
const ID = "https://github.com/redeliver/terraform-provider-redeliver/schemas/manifest.v1.json"

// durationPattern is the canonical form of topology.FormatDuration; no field of
// the manifest is zero.
const durationPattern = `^([1-9][0-9]*d)?([1-9][0-9]*h)?([1-9][0-9]*m)?([1-9][0-9]*s)?([1-9][0-9]*ms)?$`

// Generate returns the schema as indented JSON. sourceDir holds the source of
// package topology, for its comments.
func Generate(sourceDir string) ([]byte, error) {
	comments, err := readComments(sourceDir)
	if err != nil {
		return nil, err
	}
	manifest := reflect.TypeFor[topology.Manifest]()
	schema, err := jsonschema.ForType(manifest, &jsonschema.ForOptions{TypeSchemas: scalars()})
	if err != nil {
		return nil, fmt.Errorf("schema of the manifest: %w", err)
	}
	if err := describe(schema, manifest, comments); err != nil {
		return nil, err
	}
	if err := constrain(schema); err != nil {
		return nil, err
	}
	schema.If, schema.Then, schema.Else = byBroker()
	schema.Schema = "https://json-schema.org/draft/2020-12/schema"
	schema.ID = ID
	schema.Title = "Manifest of a redeliver topic"
	schema.Description = comments["Manifest"]
	compact, err := json.Marshal(schema)
	if err != nil {
		return nil, fmt.Errorf("schema of the manifest: %w", err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, compact, "", "  "); err != nil {
		return nil, fmt.Errorf("schema of the manifest: %w", err)
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// scalars are the schemas of types that are not written as what they are in Go.
func scalars() map[reflect.Type]*jsonschema.Schema {
	one := 1
	return map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[topology.Duration]():      {Type: "string", Pattern: durationPattern, MinLength: &one, Examples: []any{"500ms", "30s", "1h30m"}},
		reflect.TypeFor[topology.Arguments]():     {Type: "object", AdditionalProperties: &jsonschema.Schema{}},
		reflect.TypeFor[topology.SQSAttributes](): {Type: "object", AdditionalProperties: &jsonschema.Schema{Type: "string"}},
		reflect.TypeFor[topology.Convention]():    {Type: "string", Enum: values(topology.Conventions()...)},
		reflect.TypeFor[topology.QueueType]():     {Type: "string", Enum: values(topology.Classic, topology.Quorum, topology.Standard, topology.FIFO)},
		reflect.TypeFor[topology.Strategy]():      {Type: "string", Enum: values(topology.Strategies()...)},
		reflect.TypeFor[topology.ParkMode]():      {Type: "string", Enum: values(topology.ParkReject, topology.ParkPublish)},
		reflect.TypeFor[topology.FinalMode]():     {Type: "string", Enum: values(topology.FinalBroker, topology.FinalPublish)},
	}
}

func values[T any](list ...T) []any {
	out := make([]any, len(list))
	for i, v := range list {
		out[i] = v
	}
	return out
}

// describe gives every property of a struct its title and description, and
// takes null from lists, which are always written. It goes into nested types.
func describe(schema *jsonschema.Schema, t reflect.Type, comments map[string]string) error {
	if t.Kind() == reflect.Slice {
		schema.Types, schema.Type = nil, "array"
		return describe(schema.Items, t.Elem(), comments)
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	for _, field := range reflect.VisibleFields(t) {
		if field.Anonymous {
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		property := schema.Properties[name]
		if property == nil {
			return fmt.Errorf("type %s: field %s has no property %q in the schema", t.Name(), field.Name, name)
		}
		owner := t
		if len(field.Index) > 1 {
			owner = t.FieldByIndex(field.Index[:len(field.Index)-1]).Type // declared in an embedded struct
		}
		comment := comments[owner.Name()+"."+field.Name]
		if comment == "" {
			return fmt.Errorf("type %s: field %s has no doc comment to describe it", owner.Name(), field.Name)
		}
		property.Title = title(name)
		// Go documentation starts with the field's name in Go; the reader of a schema sees the one in JSON.
		property.Description = strings.Replace(comment, field.Name+" ", property.Title+" ", 1)
		if err := describe(property, field.Type, comments); err != nil {
			return err
		}
	}
	return nil
}

// title writes a field's name for people: "retry_exchange" is "Retry exchange".
func title(name string) string {
	words := strings.ReplaceAll(name, "_", " ")
	return strings.ToUpper(words[:1]) + words[1:]
}

// constrain adds the limits that Go's types do not have.
func constrain(root *jsonschema.Schema) error {
	zero, one, name := 0.0, 1.0, topology.MaxNameBytes
	some := 1
	for path, limit := range map[string]jsonschema.Schema{
		"version":                  {Const: constant(topology.ManifestVersion)},
		"broker":                   {Enum: values(topology.BrokerRabbitMQ, topology.BrokerSQS)},
		"vhost":                    {MinLength: &some, MaxLength: &name},
		"topic":                    {MinLength: &some, MaxLength: &name},
		"work_queue/name":          {MinLength: &some, MaxLength: &name},
		"sequence/shards/name":     {MinLength: &some, MaxLength: &name},
		"hold_queues/name":         {MinLength: &some, MaxLength: &name},
		"hold_queues/tier":         {Minimum: &zero},
		"hold_queues/shard":        {Minimum: &zero},
		"dead_letter/name":         {MinLength: &some, MaxLength: &name},
		"parked/name":              {MinLength: &some, MaxLength: &name},
		"retry/max_retries":        {Minimum: &zero},
		"retry/jitter":             {Minimum: &zero, ExclusiveMaximum: &one},
		"headers/retry_count_from": {Minimum: &zero, Maximum: &one},
		"headers/error_max":        {Minimum: &zero},
		"fingerprint":              {Pattern: `^sha256:[0-9a-f]{64}$`},
		"bindings/exchange":        {MinLength: &some, MaxLength: &name},
	} {
		target := root
		for step := range strings.SplitSeq(path, "/") {
			if target.Items != nil {
				target = target.Items
			}
			if target = target.Properties[step]; target == nil {
				return fmt.Errorf("schema of the manifest: there is no field %q to constrain", path)
			}
		}
		target.Const, target.Enum, target.Pattern = limit.Const, limit.Enum, limit.Pattern
		target.MinLength, target.MaxLength = limit.MinLength, limit.MaxLength
		target.Minimum, target.Maximum, target.ExclusiveMaximum = limit.Minimum, limit.Maximum, limit.ExclusiveMaximum
	}
	return nil
}

// byBroker are the fields that depend on the kind of broker: what a manifest has on RabbitMQ, and what on SQS.
func byBroker() (condition, rabbitMQ, sqs *jsonschema.Schema) {
	properties := func(p map[string]*jsonschema.Schema) *jsonschema.Schema { return &jsonschema.Schema{Properties: p} }
	queue := func(types []any, required, absent []string) *jsonschema.Schema {
		s := properties(map[string]*jsonschema.Schema{"type": {Enum: types}})
		s.Required = required
		for _, name := range absent {
			s.Properties[name] = never()
		}
		return s
	}
	queues := func(q, target *jsonschema.Schema) *jsonschema.Schema {
		return properties(map[string]*jsonschema.Schema{
			"work_queue": q, "dead_letter": target, "parked": target, "hold_queues": {Items: q},
			"sequence": properties(map[string]*jsonschema.Schema{"shards": {Items: q}}),
		})
	}
	onRabbitMQ := queue(values(topology.Classic, topology.Quorum), []string{"arguments"}, []string{"url", "arn", "attributes"})
	rabbitMQ = queues(onRabbitMQ, onRabbitMQ)
	rabbitMQ.Required = []string{"vhost"}
	types := values(topology.Standard, topology.FIFO)
	sqs = queues(
		queue(types, []string{"url", "arn", "attributes"}, []string{"arguments"}),
		queue(types, []string{"url", "arn"}, []string{"arguments"}),
	)
	sqs.Properties["vhost"] = never()
	return properties(map[string]*jsonschema.Schema{"broker": {Const: constant(topology.BrokerRabbitMQ)}}), rabbitMQ, sqs
}

// never allows nothing: a field of this schema is absent.
func never() *jsonschema.Schema { return &jsonschema.Schema{Not: &jsonschema.Schema{}} }

func constant(value any) *any { return &value }
