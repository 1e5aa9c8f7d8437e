package command

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// configFile is Terraform configuration that is being written, whatever the broker.
type configFile struct {
	file   *hclwrite.File
	labels map[string]bool
	blocks int
	// notes say what the configuration does not have.
	notes []string
}

func newConfigFile() *configFile {
	return &configFile{file: hclwrite.NewEmptyFile(), labels: map[string]bool{}}
}

// note adds what the configuration of a topic does not have.
func (f *configFile) note(topic, format string, args ...any) {
	f.notes = append(f.notes, fmt.Sprintf("topic %q: ", topic)+fmt.Sprintf(format, args...))
}

// label is the name of a topic's resources: a word that no other topic has.
func (f *configFile) label(topic string) string {
	word := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, topic)
	if !hclsyntax.ValidIdentifier(word) {
		word = "topic_" + word
	}
	label := word
	for n := 2; f.labels[label]; n++ {
		label = fmt.Sprintf("%s_%d", word, n)
	}
	f.labels[label] = true
	return label
}

// imported begins a resource, behind the block that imports it.
func (f *configFile) imported(kind, label, id string) *hclwrite.Body {
	body := f.file.Body()
	if f.blocks > 0 {
		body.AppendNewline()
	}
	f.blocks++
	imports := body.AppendNewBlock("import", nil).Body()
	imports.SetAttributeTraversal("to", traversal(kind, label))
	imports.SetAttributeValue("id", text(id))
	body.AppendNewline()
	return body.AppendNewBlock("resource", []string{kind, label}).Body()
}

// scheme writes under which naming scheme a resource has its names.
func (f *configFile) scheme(body *hclwrite.Body, convention topology.Convention, group string) {
	body.SetAttributeValue("convention", text(string(convention)))
	if group != "" {
		body.SetAttributeValue("consumer_group", text(group))
	}
}

func text(s string) cty.Value { return cty.StringVal(s) }

func durations(delays []time.Duration) cty.Value {
	values := make([]cty.Value, len(delays))
	for i, d := range delays {
		values[i] = text(topology.FormatDuration(d))
	}
	return cty.TupleVal(values)
}

// valueOf is a value of an argument, whose type is kept.
func valueOf(value any) cty.Value {
	switch v := value.(type) {
	case string:
		return text(v)
	case bool:
		return cty.BoolVal(v)
	case int64:
		return cty.NumberIntVal(v)
	case float64:
		return cty.NumberFloatVal(v)
	case []any:
		values := make([]cty.Value, len(v))
		for i, inner := range v {
			values[i] = valueOf(inner)
		}
		return cty.TupleVal(values)
	case topology.Arguments:
		return valueOf(map[string]any(v))
	case map[string]any:
		fields := make(map[string]cty.Value, len(v))
		for name, inner := range v {
			fields[name] = valueOf(inner)
		}
		return cty.ObjectVal(fields)
	}
	return cty.NullVal(cty.DynamicPseudoType)
}

func traversal(root string, rest ...string) hcl.Traversal {
	out := hcl.Traversal{hcl.TraverseRoot{Name: root}}
	for _, name := range rest {
		out = append(out, hcl.TraverseAttr{Name: name})
	}
	return out
}

// encoded is text as a part of an import id.
func encoded(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }

// withParams is an import id with what has to be said of the names behind it: own is the parameter that tells of what the
// convention does not derive.
func withParams(head string, convention topology.Convention, group, own, value string) string {
	if convention == topology.Redeliver {
		convention = ""
	}
	separator := "?"
	for _, p := range [][2]string{{"consumer_group", group}, {"convention", string(convention)}, {own, value}} {
		if p[1] != "" {
			head += separator + p[0] + "=" + encoded(p[1])
			separator = "&"
		}
	}
	return head
}
