// Command schemadump writes the provider's schema in the form of "terraform
// providers schema -json", asked of the provider server in this process: the
// documentation is generated from it without a Terraform CLI.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/redeliver/terraform-provider-redeliver/internal/provider"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "schemadump:", err)
		os.Exit(1)
	}
}

type object = map[string]any

func run() error {
	server, err := providerserver.NewProtocol6WithError(provider.New("dev")())()
	if err != nil {
		return err
	}
	resp, err := server.GetProviderSchema(context.Background(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		return err
	}
	for _, d := range resp.Diagnostics {
		return fmt.Errorf("%s: %s", d.Summary, d.Detail)
	}
	resources, functions := object{}, object{}
	for name, schema := range resp.ResourceSchemas {
		resources[name] = schemaJSON(schema)
	}
	dataSources := object{}
	for name, schema := range resp.DataSourceSchemas {
		dataSources[name] = schemaJSON(schema)
	}
	for name, f := range resp.Functions {
		functions[name] = functionJSON(f)
	}
	enc := json.NewEncoder(os.Stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(object{
		"format_version": "1.0",
		"provider_schemas": object{provider.Address: object{
			"provider": schemaJSON(resp.Provider), "resource_schemas": resources, "data_source_schemas": dataSources, "functions": functions,
		}},
	})
}

func schemaJSON(s *tfprotov6.Schema) object {
	return object{"version": s.Version, "block": blockJSON(s.Block)}
}

func blockJSON(b *tfprotov6.SchemaBlock) object {
	blocks := object{}
	for _, nested := range b.BlockTypes {
		blocks[nested.TypeName] = object{"nesting_mode": nesting(nested.Nesting.String()), "block": blockJSON(nested.Block)}
	}
	return object{"attributes": attributesJSON(b.Attributes), "block_types": blocks, "description": b.Description, "description_kind": kind(b.DescriptionKind)}
}

func attributesJSON(attributes []*tfprotov6.SchemaAttribute) object {
	out := object{}
	for _, a := range attributes {
		field := object{
			"description": a.Description, "description_kind": kind(a.DescriptionKind), "required": a.Required, "optional": a.Optional,
			"computed": a.Computed, "sensitive": a.Sensitive, "deprecated": a.Deprecated, "write_only": a.WriteOnly,
		}
		if a.NestedType != nil {
			field["nested_type"] = object{"attributes": attributesJSON(a.NestedType.Attributes), "nesting_mode": nesting(a.NestedType.Nesting.String())}
		} else {
			field["type"] = typeJSON(a.Type)
		}
		out[a.Name] = field
	}
	return out
}

func functionJSON(f *tfprotov6.Function) object {
	parameters := make([]object, len(f.Parameters))
	for i, p := range f.Parameters {
		parameters[i] = object{"name": p.Name, "description": p.Description, "is_nullable": p.AllowNullValue, "type": typeJSON(p.Type)}
	}
	return object{"summary": f.Summary, "description": f.Description, "return_type": typeJSON(f.Return.Type), "parameters": parameters}
}

func typeJSON(t tftypes.Type) json.RawMessage {
	text, err := t.MarshalJSON() //nolint:staticcheck // the one place that knows this form of a type
	if err != nil {
		panic(fmt.Sprintf("schemadump: a type of the schema does not encode: %v", err))
	}
	return text
}

func nesting(protocol string) string {
	return map[string]string{"SINGLE": "single", "LIST": "list", "SET": "set", "MAP": "map", "GROUP": "group"}[protocol]
}

func kind(k tfprotov6.StringKind) string {
	if k == tfprotov6.StringKindMarkdown {
		return "markdown"
	}
	return "plain"
}
