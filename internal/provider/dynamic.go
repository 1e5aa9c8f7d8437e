package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// dynamicArguments reads a dynamic attribute that holds an object or a map as
// AMQP arguments. Types are kept: 5000 is a number, "5000" a string. known is
// false where any part of it is not known yet.
func dynamicArguments(value types.Dynamic) (args topology.Arguments, known bool, err error) {
	if value.IsNull() || value.IsUnderlyingValueNull() {
		return nil, true, nil
	}
	if value.IsUnknown() || value.IsUnderlyingValueUnknown() {
		return nil, false, nil
	}
	decoded, known, err := dynamicValue(value.UnderlyingValue())
	if err != nil || !known {
		return nil, known, err
	}
	fields, ok := decoded.(map[string]any)
	if !ok {
		return nil, true, fmt.Errorf(`it must be an object such as { "x-max-length" = 10000 }, not %s`, topology.CanonicalJSON(decoded))
	}
	args, err = topology.NormaliseArguments(fields)
	return args, true, err
}

// dynamicValue turns a Terraform value of any type into the types of [topology.Arguments].
func dynamicValue(value attr.Value) (decoded any, known bool, err error) {
	if value.IsUnknown() {
		return nil, false, nil
	}
	if value.IsNull() {
		return nil, true, nil
	}
	switch v := value.(type) {
	case types.String:
		return v.ValueString(), true, nil
	case types.Bool:
		return v.ValueBool(), true, nil
	case types.Number:
		return number(v.ValueBigFloat())
	case types.Int64:
		return v.ValueInt64(), true, nil
	case types.Float64:
		return v.ValueFloat64(), true, nil
	case types.Dynamic:
		return dynamicValue(v.UnderlyingValue())
	case types.List:
		return dynamicList(v.Elements())
	case types.Set:
		return dynamicList(v.Elements())
	case types.Tuple:
		return dynamicList(v.Elements())
	case types.Map:
		return dynamicMap(v.Elements())
	case types.Object:
		return dynamicMap(v.Attributes())
	default:
		return nil, true, fmt.Errorf("a value of type %T cannot be an AMQP argument", value)
	}
}

func number(f *big.Float) (any, bool, error) {
	if n, accuracy := f.Int64(); accuracy == big.Exact {
		return n, true, nil
	}
	if f.IsInt() {
		return nil, true, fmt.Errorf("%s is out of range: RabbitMQ holds integers of 64 bits", f.Text('f', 0))
	}
	n, _ := f.Float64()
	return n, true, nil
}

func dynamicList(elements []attr.Value) (any, bool, error) {
	list := make([]any, len(elements))
	for i, element := range elements {
		decoded, known, err := dynamicValue(element)
		if err != nil || !known {
			return nil, known, err
		}
		list[i] = decoded
	}
	return list, true, nil
}

func dynamicMap(elements map[string]attr.Value) (any, bool, error) {
	fields := make(map[string]any, len(elements))
	for key, element := range elements {
		decoded, known, err := dynamicValue(element)
		if err != nil || !known {
			return nil, known, err
		}
		fields[key] = decoded
	}
	return fields, true, nil
}

// fullyKnown reports whether nothing inside value is unknown.
func fullyKnown(value attr.Value) bool {
	if value.IsUnknown() {
		return false
	}
	switch v := value.(type) {
	case types.Dynamic:
		return v.IsNull() || fullyKnown(v.UnderlyingValue())
	case types.Object:
		return allKnown(slices.Collect(maps.Values(v.Attributes())))
	case types.Map:
		return allKnown(slices.Collect(maps.Values(v.Elements())))
	case types.List:
		return allKnown(v.Elements())
	case types.Set:
		return allKnown(v.Elements())
	case types.Tuple:
		return allKnown(v.Elements())
	}
	return true
}

func allKnown(elements []attr.Value) bool {
	for _, element := range elements {
		if !fullyKnown(element) {
			return false
		}
	}
	return true
}

// unknownOf is the unknown value of a type.
func unknownOf(ctx context.Context, of attr.Type) attr.Value {
	value, err := of.ValueFromTerraform(ctx, tftypes.NewValue(of.TerraformType(ctx), tftypes.UnknownValue))
	if err != nil {
		return types.DynamicUnknown() // every attribute type takes an unknown value
	}
	return value
}

// dynamicOf reads a JSON object as the dynamic value that an object of the
// configuration has: an object with the types of its fields.
func dynamicOf(text string) (types.Dynamic, error) {
	var args topology.Arguments
	if err := json.Unmarshal([]byte(text), &args); err != nil {
		return types.DynamicNull(), fmt.Errorf("arguments %q: it is not a JSON object: %w", text, err)
	}
	return types.DynamicValue(attrValue(map[string]any(args))), nil
}

// attrValue turns a value of [topology.Arguments] into the one Terraform gives the same expression.
func attrValue(value any) attr.Value {
	switch v := value.(type) {
	case string:
		return types.StringValue(v)
	case bool:
		return types.BoolValue(v)
	case int64:
		return types.NumberValue(new(big.Float).SetInt64(v))
	case float64:
		return types.NumberValue(big.NewFloat(v))
	case []any:
		elements := make([]attr.Value, len(v))
		kinds := make([]attr.Type, len(v))
		for i := range v {
			elements[i] = attrValue(v[i])
			kinds[i] = elements[i].Type(context.Background())
		}
		return types.TupleValueMust(kinds, elements)
	case map[string]any:
		fields := make(map[string]attr.Value, len(v))
		kinds := make(map[string]attr.Type, len(v))
		for key := range v {
			fields[key] = attrValue(v[key])
			kinds[key] = fields[key].Type(context.Background())
		}
		return types.ObjectValueMust(kinds, fields)
	default:
		return types.DynamicNull()
	}
}
