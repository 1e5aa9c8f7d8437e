package schemajson_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	tfjson "github.com/hashicorp/terraform-json"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/redeliver/terraform-provider-redeliver/internal/schemajson"
)

// server answers the two questions that Marshal asks.
type server struct {
	tfprotov6.ProviderServer
	schemas    *tfprotov6.GetProviderSchemaResponse
	identities *tfprotov6.GetResourceIdentitySchemasResponse
}

func (s server) GetProviderSchema(context.Context, *tfprotov6.GetProviderSchemaRequest) (*tfprotov6.GetProviderSchemaResponse, error) {
	return s.schemas, nil
}

func (s server) GetResourceIdentitySchemas(context.Context, *tfprotov6.GetResourceIdentitySchemasRequest) (*tfprotov6.GetResourceIdentitySchemasResponse, error) {
	return s.identities, nil
}

func attributes(attributes ...*tfprotov6.SchemaAttribute) *tfprotov6.Schema {
	return &tfprotov6.Schema{Version: 2, Block: &tfprotov6.SchemaBlock{Attributes: attributes, Description: "what", DescriptionKind: tfprotov6.StringKindMarkdown}}
}

// TestMarshal reads the result the way that the documentation's generator does.
func TestMarshal(t *testing.T) {
	t.Parallel()
	object := tftypes.Object{AttributeTypes: map[string]tftypes.Type{"a": tftypes.Number, "b": tftypes.List{ElementType: tftypes.Bool}}}
	resource := attributes(
		&tfprotov6.SchemaAttribute{Name: "name", Type: tftypes.String, Required: true, Description: "the name"},
		&tfprotov6.SchemaAttribute{Name: "any", Type: tftypes.DynamicPseudoType, Optional: true, Computed: true},
		&tfprotov6.SchemaAttribute{Name: "object", Type: tftypes.Map{ElementType: object}, Computed: true, Sensitive: true},
		&tfprotov6.SchemaAttribute{Name: "tuple", Type: tftypes.Tuple{ElementTypes: []tftypes.Type{tftypes.String, tftypes.Set{ElementType: tftypes.String}}}, Optional: true, WriteOnly: true},
		&tfprotov6.SchemaAttribute{Name: "nested", Optional: true, NestedType: &tfprotov6.SchemaObject{
			Nesting:    tfprotov6.SchemaObjectNestingModeList,
			Attributes: []*tfprotov6.SchemaAttribute{{Name: "inner", Type: tftypes.Bool, Optional: true}},
		}},
	)
	resource.Block.BlockTypes = []*tfprotov6.SchemaNestedBlock{{
		TypeName: "timeouts", Nesting: tfprotov6.SchemaNestedBlockNestingModeSingle, MaxItems: 1, Block: &tfprotov6.SchemaBlock{},
	}}
	one := attributes(&tfprotov6.SchemaAttribute{Name: "one", Type: tftypes.String, Optional: true})

	text, err := schemajson.Marshal(t.Context(), server{
		schemas: &tfprotov6.GetProviderSchemaResponse{
			Provider:                 one,
			ResourceSchemas:          map[string]*tfprotov6.Schema{"redeliver_topic": resource},
			DataSourceSchemas:        map[string]*tfprotov6.Schema{"redeliver_topic": one},
			EphemeralResourceSchemas: map[string]*tfprotov6.Schema{"redeliver_topic": one},
			ListResourceSchemas:      map[string]*tfprotov6.Schema{"redeliver_topic": one},
			ActionSchemas:            map[string]*tfprotov6.ActionSchema{"redeliver_replay": {Schema: one}},
			Functions: map[string]*tfprotov6.Function{"names": {
				Summary:           "names",
				Parameters:        []*tfprotov6.FunctionParameter{{Name: "topic", Type: tftypes.String, AllowNullValue: true}},
				VariadicParameter: &tfprotov6.FunctionParameter{Name: "options", Type: tftypes.DynamicPseudoType},
				Return:            &tfprotov6.FunctionReturn{Type: object},
			}},
		},
		identities: &tfprotov6.GetResourceIdentitySchemasResponse{
			IdentitySchemas: map[string]*tfprotov6.ResourceIdentitySchema{"redeliver_topic": {
				IdentityAttributes: []*tfprotov6.ResourceIdentitySchemaAttribute{{Name: "name", Type: tftypes.String, RequiredForImport: true}},
			}},
		},
	}, "redeliver")
	if err != nil {
		t.Fatal(err)
	}
	var read tfjson.ProviderSchemas
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	got := read.Schemas["redeliver"]
	if got == nil {
		t.Fatalf("the provider is missing:\n%s", text)
	}
	if len(got.DataSourceSchemas) != 1 || len(got.EphemeralResourceSchemas) != 1 || len(got.ListResourceSchemas) != 1 || len(got.ActionSchemas) != 1 {
		t.Errorf("some kind of object is missing:\n%s", text)
	}
	topic := got.ResourceSchemas["redeliver_topic"]
	if topic.Version != 2 || topic.Block.DescriptionKind != tfjson.SchemaDescriptionKindMarkdown {
		t.Errorf("got version %d and description kind %s", topic.Version, topic.Block.DescriptionKind)
	}
	for name, want := range map[string]string{
		"name":   `{"type":"string","description":"the name","description_kind":"plain","required":true}`,
		"any":    `{"type":"dynamic","description_kind":"plain","optional":true,"computed":true}`,
		"object": `{"type":["map",["object",{"a":"number","b":["list","bool"]}]],"description_kind":"plain","computed":true,"sensitive":true}`,
		"tuple":  `{"type":["tuple",["string",["set","string"]]],"description_kind":"plain","optional":true,"write_only":true}`,
		"nested": `{"nested_type":{"attributes":{"inner":{"type":"bool","description_kind":"plain","optional":true}},"nesting_mode":"list"},"description_kind":"plain","optional":true}`,
	} {
		if have, err := json.Marshal(topic.Block.Attributes[name]); err != nil || string(have) != want {
			t.Errorf("%s: got %s (%v), want %s", name, have, err, want)
		}
	}
	if block := topic.Block.NestedBlocks["timeouts"]; block == nil || block.NestingMode != tfjson.SchemaNestingModeSingle || block.MaxItems != 1 {
		t.Errorf("got the nested block %+v", block)
	}
	function := got.Functions["names"]
	if function == nil || !function.Parameters[0].IsNullable || function.VariadicParameter.Name != "options" || !function.ReturnType.IsObjectType() {
		t.Errorf("got the function %+v", function)
	}
	if identity := got.ResourceIdentitySchemas["redeliver_topic"]; identity == nil || !identity.Attributes["name"].RequiredForImport {
		t.Errorf("got the identity %+v", identity)
	}
}

func TestMarshalReportsDiagnostics(t *testing.T) {
	t.Parallel()
	_, err := schemajson.Marshal(t.Context(), server{schemas: &tfprotov6.GetProviderSchemaResponse{
		Diagnostics: []*tfprotov6.Diagnostic{{Severity: tfprotov6.DiagnosticSeverityError, Summary: "bad schema"}},
	}}, "redeliver")
	if err == nil || !strings.Contains(err.Error(), "bad schema") {
		t.Errorf("got %v", err)
	}
}
