// Package schemajson writes a provider's schema in the JSON format of "terraform providers schema", by
// asking the provider's server in this process.
//
// The documentation is generated from it. Terraform's own dump lacks what that Terraform is too old to know
// (list resources, actions, identities), needs a Terraform, and needs the provider to be installed for it.
package schemajson

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// formatVersion is the version of the format that Terraform 1.11 writes.
const formatVersion = "1.0"

// Marshal returns the schema of the provider that server serves, under the provider's name ("redeliver").
func Marshal(ctx context.Context, server tfprotov6.ProviderServer, name string) ([]byte, error) {
	schemas, err := server.GetProviderSchema(ctx, &tfprotov6.GetProviderSchemaRequest{})
	if err == nil {
		err = diagnosticsError(schemas.Diagnostics)
	}
	if err != nil {
		return nil, fmt.Errorf("asking the provider for its schema: %w", err)
	}
	identities, err := server.GetResourceIdentitySchemas(ctx, &tfprotov6.GetResourceIdentitySchemasRequest{})
	if err == nil {
		err = diagnosticsError(identities.Diagnostics)
	}
	if err != nil {
		return nil, fmt.Errorf("asking the provider for its resource identities: %w", err)
	}
	text, err := json.MarshalIndent(document{
		FormatVersion: formatVersion,
		Schemas: map[string]provider{name: {
			Provider:           toSchema(schemas.Provider),
			Resources:          mapValues(schemas.ResourceSchemas, toSchema),
			DataSources:        mapValues(schemas.DataSourceSchemas, toSchema),
			EphemeralResources: mapValues(schemas.EphemeralResourceSchemas, toSchema),
			ListResources:      mapValues(schemas.ListResourceSchemas, toSchema),
			Actions:            mapValues(schemas.ActionSchemas, toAction),
			Functions:          mapValues(schemas.Functions, toFunction),
			Identities:         mapValues(identities.IdentitySchemas, toIdentity),
		}},
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding the provider's schema: %w", err)
	}
	return append(text, '\n'), nil
}

func diagnosticsError(diagnostics []*tfprotov6.Diagnostic) error {
	for _, d := range diagnostics {
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			return fmt.Errorf("%s: %s", d.Summary, d.Detail)
		}
	}
	return nil
}

func mapValues[From, To any](in map[string]From, convert func(From) To) map[string]To {
	out := make(map[string]To, len(in))
	for name, value := range in {
		out[name] = convert(value)
	}
	return out
}

func toSchema(s *tfprotov6.Schema) *schema {
	if s == nil {
		return nil
	}
	return &schema{Version: s.Version, Block: toBlock(s.Block)}
}

func toAction(a *tfprotov6.ActionSchema) *schema { return toSchema(a.Schema) }

func toBlock(b *tfprotov6.SchemaBlock) *block {
	if b == nil {
		return nil
	}
	out := &block{
		Attributes:      toAttributes(b.Attributes),
		Blocks:          make(map[string]*nestedBlock, len(b.BlockTypes)),
		Description:     b.Description,
		DescriptionKind: kind(b.DescriptionKind),
		Deprecated:      b.Deprecated,
	}
	for _, nested := range b.BlockTypes {
		out.Blocks[nested.TypeName] = &nestedBlock{
			Nesting:  strings.ToLower(nested.Nesting.String()),
			Block:    toBlock(nested.Block),
			MinItems: nested.MinItems,
			MaxItems: nested.MaxItems,
		}
	}
	return out
}

func toAttributes(in []*tfprotov6.SchemaAttribute) map[string]*attribute {
	out := make(map[string]*attribute, len(in))
	for _, a := range in {
		converted := &attribute{
			Type:            typeOf(a.Type),
			Description:     a.Description,
			DescriptionKind: kind(a.DescriptionKind),
			Deprecated:      a.Deprecated,
			Required:        a.Required,
			Optional:        a.Optional,
			Computed:        a.Computed,
			Sensitive:       a.Sensitive,
			WriteOnly:       a.WriteOnly,
		}
		if a.NestedType != nil {
			converted.Type = nil
			converted.NestedType = &nestedType{
				Attributes: toAttributes(a.NestedType.Attributes),
				Nesting:    strings.ToLower(a.NestedType.Nesting.String()),
			}
		}
		out[a.Name] = converted
	}
	return out
}

func toFunction(f *tfprotov6.Function) *function {
	out := &function{
		Summary:            f.Summary,
		Description:        f.Description,
		DeprecationMessage: f.DeprecationMessage,
		ReturnType:         typeOf(f.Return.Type),
	}
	for _, p := range f.Parameters {
		out.Parameters = append(out.Parameters, toParameter(p))
	}
	if f.VariadicParameter != nil {
		out.VariadicParameter = toParameter(f.VariadicParameter)
	}
	return out
}

func toParameter(p *tfprotov6.FunctionParameter) *parameter {
	return &parameter{Name: p.Name, Description: p.Description, IsNullable: p.AllowNullValue, Type: typeOf(p.Type)}
}

func toIdentity(s *tfprotov6.ResourceIdentitySchema) *identity {
	out := &identity{Version: s.Version, Attributes: make(map[string]*identityAttribute, len(s.IdentityAttributes))}
	for _, a := range s.IdentityAttributes {
		out.Attributes[a.Name] = &identityAttribute{
			Type:              typeOf(a.Type),
			Description:       a.Description,
			RequiredForImport: a.RequiredForImport,
			OptionalForImport: a.OptionalForImport,
		}
	}
	return out
}

func kind(k tfprotov6.StringKind) string {
	if k == tfprotov6.StringKindMarkdown {
		return "markdown"
	}
	return "plain"
}

// typeOf returns the JSON form of a type ("string", ["list","string"]): plain values for encoding/json.
func typeOf(t tftypes.Type) any {
	switch t := t.(type) {
	case nil:
		return nil
	case tftypes.List:
		return []any{"list", typeOf(t.ElementType)}
	case tftypes.Set:
		return []any{"set", typeOf(t.ElementType)}
	case tftypes.Map:
		return []any{"map", typeOf(t.ElementType)}
	case tftypes.Object:
		return []any{"object", mapValues(t.AttributeTypes, typeOf)}
	case tftypes.Tuple:
		elements := make([]any, 0, len(t.ElementTypes))
		for _, element := range t.ElementTypes {
			elements = append(elements, typeOf(element))
		}
		return []any{"tuple", elements}
	}
	switch {
	case t.Is(tftypes.Bool):
		return "bool"
	case t.Is(tftypes.Number):
		return "number"
	case t.Is(tftypes.String):
		return "string"
	default:
		return "dynamic"
	}
}
