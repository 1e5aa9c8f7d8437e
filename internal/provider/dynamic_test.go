package provider

import (
	"math/big"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

func object(fields map[string]attr.Value) types.Dynamic {
	kinds := map[string]attr.Type{}
	for name, field := range fields {
		kinds[name] = field.Type(nil) //nolint:staticcheck // no type of these tests looks at its context
	}
	return types.DynamicValue(types.ObjectValueMust(kinds, fields))
}

func num(text string) types.Number {
	f, _, err := big.ParseFloat(text, 10, 512, big.ToNearestEven)
	if err != nil {
		panic(err)
	}
	return types.NumberValue(f)
}

func TestDynamicArgumentsKeepTheirTypes(t *testing.T) {
	t.Parallel()
	list := types.TupleValueMust([]attr.Type{types.NumberType, types.StringType}, []attr.Value{num("1"), types.StringValue("1")})
	nested := types.ObjectValueMust(map[string]attr.Type{"on": types.BoolType}, map[string]attr.Value{"on": types.BoolValue(true)})
	args, known, err := dynamicArguments(object(map[string]attr.Value{
		"number": num("5000"), "string": types.StringValue("5000"), "bool": types.BoolValue(false), "float": num("1.5"), "negative": num("-1"),
		"big": num("9223372036854775807"), "list": list, "map": nested,
	}))
	const want = `{"big":9223372036854775807,"bool":false,"float":1.5,"list":[1,"1"],"map":{"on":true},"negative":-1,"number":5000,"string":"5000"}`
	if got := topology.CanonicalJSON(args); err != nil || !known || got != want {
		t.Errorf("got %s, %v, %v", got, known, err)
	}
}

func TestDynamicArgumentsOfMapsListsAndSets(t *testing.T) {
	t.Parallel()
	list := types.ListValueMust(types.Int64Type, []attr.Value{types.Int64Value(1), types.Int64Value(2)})
	set := types.SetValueMust(types.Float64Type, []attr.Value{types.Float64Value(0.5)})
	args, known, err := dynamicArguments(types.DynamicValue(types.MapValueMust(types.ListType{ElemType: types.Int64Type}, map[string]attr.Value{"list": list})))
	if got := topology.CanonicalJSON(args); err != nil || !known || got != `{"list":[1,2]}` {
		t.Errorf("a map: %s, %v, %v", got, known, err)
	}
	args, known, err = dynamicArguments(object(map[string]attr.Value{"set": set, "dynamic": types.DynamicValue(types.StringValue("x"))}))
	if got := topology.CanonicalJSON(args); err != nil || !known || got != `{"dynamic":"x","set":[0.5]}` {
		t.Errorf("an object: %s, %v, %v", got, known, err)
	}
}

func TestDynamicArgumentsThatAreAbsentOrUnknown(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		value types.Dynamic
		known bool
	}{
		"null":            {types.DynamicNull(), true},
		"typed null":      {types.DynamicValue(types.MapNull(types.StringType)), true},
		"unknown":         {types.DynamicUnknown(), false},
		"typed unknown":   {types.DynamicValue(types.MapUnknown(types.StringType)), false},
		"unknown field":   {object(map[string]attr.Value{"a": types.StringUnknown()}), false},
		"unknown in list": {object(map[string]attr.Value{"a": types.ListValueMust(types.StringType, []attr.Value{types.StringUnknown()})}), false},
	} {
		if fullyKnown(test.value) != test.known {
			t.Errorf("%s: fully known is %v", name, !test.known)
		}
		args, known, err := dynamicArguments(test.value)
		if err != nil || known != test.known || len(args) > 0 {
			t.Errorf("%s: %v, known %v, %v", name, args, known, err)
		}
	}
}

func TestDynamicArgumentsRefuseWhatIsNoObject(t *testing.T) {
	t.Parallel()
	for says, value := range map[string]types.Dynamic{
		`it must be an object such as { "x-max-length" = 10000 }, not "text"`: types.DynamicValue(types.StringValue("text")),
		"not [1]":                             types.DynamicValue(types.TupleValueMust([]attr.Type{types.NumberType}, []attr.Value{num("1")})),
		"9223372036854775808 is out of range": object(map[string]attr.Value{"n": num("9223372036854775808")}),
	} {
		if _, _, err := dynamicArguments(value); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v: %v, want %q", value, err, says)
		}
	}
}

func TestDynamicValueSurvivesTheWayThroughJSON(t *testing.T) {
	t.Parallel()
	const text = `{"a":[1,"1",{"b":true}],"c":1.5,"d":{"e":"x"},"n":null}`
	value, err := dynamicOf(text)
	if err != nil {
		t.Fatal(err)
	}
	args, known, err := dynamicArguments(value)
	if got := topology.CanonicalJSON(args); err != nil || !known || got != text {
		t.Errorf("got %s, %v, %v", got, known, err)
	}
	for _, bad := range []string{"", "[1]", "{", "5"} {
		if _, err := dynamicOf(bad); err == nil || !strings.Contains(err.Error(), "not a JSON object") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
