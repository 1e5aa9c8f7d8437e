package provider

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	hcllang "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// TestExamplesOfNewerCommandLinesAreValid holds the examples that the installed command line may be too old to run (lists,
// actions, imports by identity) against the provider's schemas, and has the provider validate or import what they say.
func TestExamplesOfNewerCommandLinesAreValid(t *testing.T) {
	t.Parallel()
	p, onSQS := newProtocol(t), newProtocol(t)
	onSQS.configure(map[string]any{"sqs": map[string]any{"region": "eu-west-1", "account_id": "123456789012", "access_key": "key", "secret_key": "secret"}})
	found := map[string]int{}
	err := filepath.WalkDir(examplesDir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "import-by-identity.tf" && entry.Name() != "action.tf" && !strings.HasSuffix(path, ".tfquery.hcl") {
			return err
		}
		for _, block := range blocksOf(t, path) {
			found[block.Type]++
			t.Run(strings.TrimPrefix(path, examplesDir+"/")+" "+strings.Join(block.Labels, "."), func(t *testing.T) {
				p := *p
				if strings.Contains(path, "redeliver_sqs_") {
					p = *onSQS
				}
				p.t = t
				switch block.Type {
				case "list":
					p.validList(block)
				case "action":
					p.validAction(block)
				case "import":
					p.validImport(block)
				default:
					t.Errorf("a block %q, which is not known here", block.Type)
				}
			})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// Every list, action and resource has one.
	if lists, actions, imports := len(p.schemas.ListResourceSchemas), len(p.schemas.ActionSchemas), len(p.identities); found["list"] < lists || found["action"] < actions || found["import"] < imports {
		t.Errorf("there are examples of %v, for %d lists, %d actions and %d resources", found, lists, actions, imports)
	}
}

func blocksOf(t *testing.T, path string) hclsyntax.Blocks {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file, diags := hclparse.NewParser().ParseHCL(text, path)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	return file.Body.(*hclsyntax.Body).Blocks
}

// only checks that a block has no other attributes and blocks than these, and returns the one called config, nil where there is none.
func (p *protocol) only(block *hclsyntax.Block, attributes ...string) (config *hclsyntax.Block) {
	p.t.Helper()
	for name := range block.Body.Attributes {
		if !slices.Contains(attributes, name) {
			p.t.Errorf("%s %q has the attribute %q", block.Type, block.Labels, name)
		}
	}
	for _, inner := range block.Body.Blocks {
		if inner.Type != "config" || config != nil {
			p.t.Errorf("%s %q has a block %q", block.Type, block.Labels, inner.Type)
		}
		config = inner
	}
	return config
}

// evaluated is what the attributes of a block say. What they refer to is not known.
func (p *protocol) evaluated(attributes hclsyntax.Attributes) map[string]any {
	p.t.Helper()
	out := map[string]any{}
	for name, attribute := range attributes {
		variables := map[string]cty.Value{}
		for _, traversal := range attribute.Expr.Variables() {
			variables[traversal.RootName()] = cty.DynamicVal
		}
		value, diags := attribute.Expr.Value(&hcllang.EvalContext{Variables: variables, Functions: map[string]function.Function{"jsonencode": stdlib.JSONEncodeFunc}})
		if diags.HasErrors() {
			p.t.Fatal(diags)
		}
		out[name] = plainValue(value)
	}
	return out
}

func plainValue(value cty.Value) any {
	switch kind := value.Type(); {
	case !value.IsKnown():
		return tftypes.UnknownValue
	case value.IsNull():
		return nil
	case kind == cty.String:
		return value.AsString()
	case kind == cty.Number:
		return value.AsBigFloat()
	case kind == cty.Bool:
		return value.True()
	case kind.IsObjectType():
		fields := map[string]any{}
		for name, field := range value.AsValueMap() {
			fields[name] = plainValue(field)
		}
		return fields
	default:
		elements := []any{}
		for _, element := range value.AsValueSlice() {
			elements = append(elements, plainValue(element))
		}
		return elements
	}
}

// encode is what a block says as a value of a schema, which has to have every attribute.
func (p *protocol) encode(of tftypes.Type, given map[string]any) *tfprotov6.DynamicValue {
	p.t.Helper()
	for name := range given {
		if _, ok := of.(tftypes.Object).AttributeTypes[name]; !ok {
			p.t.Fatalf("%q is none of %q", name, slices.Sorted(maps.Keys(of.(tftypes.Object).AttributeTypes)))
		}
	}
	return p.value(of, given)
}

func (p *protocol) configOf(of tftypes.Type, config *hclsyntax.Block) *tfprotov6.DynamicValue {
	p.t.Helper()
	if config == nil {
		return p.encode(of, map[string]any{})
	}
	if len(config.Body.Blocks) > 0 {
		p.t.Errorf("there are blocks in the configuration: %v", config.Body.Blocks)
	}
	return p.encode(of, p.evaluated(config.Body.Attributes))
}

func (p *protocol) validList(block *hclsyntax.Block) {
	p.t.Helper()
	config := p.only(block, "provider", "include_resource", "limit")
	name := block.Labels[0]
	schema := p.schemas.ListResourceSchemas[name]
	if schema == nil {
		p.t.Fatalf("there is no list %q", name)
	}
	got, err := p.server.(tfprotov6.ListResourceServer).ValidateListResourceConfig(p.t.Context(),
		&tfprotov6.ValidateListResourceConfigRequest{TypeName: name, Config: p.configOf(schema.ValueType(), config)})
	if err != nil {
		p.t.Fatal(err)
	}
	p.noErrors(got.Diagnostics)
}

func (p *protocol) validAction(block *hclsyntax.Block) {
	p.t.Helper()
	config := p.only(block, "provider", "count", "for_each")
	name := block.Labels[0]
	action := p.schemas.ActionSchemas[name]
	if action == nil {
		p.t.Fatalf("there is no action %q", name)
	}
	got, err := p.server.(tfprotov6.ActionServer).ValidateActionConfig(p.t.Context(),
		&tfprotov6.ValidateActionConfigRequest{ActionType: name, Config: p.configOf(action.Schema.ValueType(), config)})
	if err != nil {
		p.t.Fatal(err)
	}
	p.noErrors(got.Diagnostics)
}

// validImport imports by the identity, which takes no broker: what is there the refresh looks at.
func (p *protocol) validImport(block *hclsyntax.Block) {
	p.t.Helper()
	p.only(block, "to", "identity", "provider")
	to, identity := block.Body.Attributes["to"], block.Body.Attributes["identity"]
	if to == nil || identity == nil {
		p.t.Fatal("an import by identity has the attributes to and identity")
	}
	name := to.Expr.Variables()[0].RootName()
	of := p.identities[name]
	if of == nil {
		p.t.Fatalf("there is no resource %q with an identity", name)
	}
	given, _ := p.evaluated(hclsyntax.Attributes{"identity": identity})["identity"].(map[string]any)
	got, err := p.server.ImportResourceState(p.t.Context(), &tfprotov6.ImportResourceStateRequest{
		TypeName: name, Identity: &tfprotov6.ResourceIdentityData{IdentityData: p.encode(of, given)},
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.noErrors(got.Diagnostics)
	if len(got.ImportedResources) != 1 {
		p.t.Errorf("%d resources are imported", len(got.ImportedResources))
	}
}
