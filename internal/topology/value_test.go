package topology

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
)

func TestNormaliseArguments(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		in   any
		want any
		json string
	}{
		"int":                {5000, int64(5000), "5000"},
		"int8":               {int8(-8), int64(-8), "-8"},
		"int16":              {int16(16), int64(16), "16"},
		"int32":              {int32(32), int64(32), "32"},
		"uint8":              {uint8(8), int64(8), "8"},
		"uint16":             {uint16(16), int64(16), "16"},
		"uint32":             {uint32(math.MaxUint32), int64(math.MaxUint32), "4294967295"},
		"uint":               {uint(7), int64(7), "7"},
		"uint64":             {uint64(math.MaxInt64), int64(math.MaxInt64), "9223372036854775807"},
		"float32":            {float32(0.5), 0.5, "0.5"},
		"whole float":        {5000.0, int64(5000), "5000"},
		"float":              {1.5, 1.5, "1.5"},
		"negative zero":      {math.Copysign(0, -1), int64(0), "0"},
		"least integer":      {-float64(1 << 63), int64(math.MinInt64), "-9223372036854775808"},
		"past the integers":  {float64(1 << 63), float64(1 << 63), "9.223372036854776e+18"},
		"large float":        {1e300, 1e300, "1e+300"},
		"small float":        {1e-7, 1e-7, "1e-7"},
		"number":             {json.Number("5000"), int64(5000), "5000"},
		"number, fraction":   {json.Number("5000.0"), int64(5000), "5000"},
		"number, exponent":   {json.Number("5e3"), int64(5000), "5000"},
		"number, -0":         {json.Number("-0"), int64(0), "0"},
		"number, -0.0":       {json.Number("-0.0"), int64(0), "0"},
		"number, max":        {json.Number("9223372036854775807"), int64(math.MaxInt64), "9223372036854775807"},
		"string":             {"5000", "5000", `"5000"`},
		"string, escapes":    {"<a&b>\"\n\u2028", "<a&b>\"\n\u2028", `"<a&b>\"\n\u2028"`},
		"null":               {nil, nil, "null"},
		"bool":               {true, true, "true"},
		"list":               {[]any{1, "1", []any{}}, []any{int64(1), "1", []any{}}, `[1,"1",[]]`},
		"map":                {map[string]any{"b": 1, "a": nil}, map[string]any{"b": int64(1), "a": nil}, `{"a":null,"b":1}`},
		"arguments in a map": {Arguments{"a": uint8(1)}, map[string]any{"a": int64(1)}, `{"a":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := NormaliseArguments(map[string]any{"x": tc.in})
			if err != nil || !reflect.DeepEqual(got["x"], tc.want) {
				t.Fatalf("normalised to %T %v, %v; want %T %v", got["x"], got["x"], err, tc.want, tc.want)
			}
			canonical := got.Canonical()
			if canonical["x"] != tc.json {
				t.Errorf("canonical %s, want %s", canonical["x"], tc.json)
			}
			if back, err := ParseCanonical(canonical); err != nil || !reflect.DeepEqual(back, got) {
				t.Errorf("parsed back as %v, %v", back, err)
			}
		})
	}
}

func TestNormaliseArgumentsRefuses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		in         any
		essentials []string
	}{
		"NaN":               {math.NaN(), []string{`"x"`, "NaN", "not a number"}},
		"infinite":          {math.Inf(-1), []string{`"x"`, "-Inf"}},
		"large unsigned":    {uint64(math.MaxUint64), []string{"18446744073709551615", "out of range", "64-bit"}},
		"large number":      {json.Number("9223372036854775808"), []string{"9223372036854775808", "out of range"}},
		"huge number":       {json.Number("1e400"), []string{"1e400", "out of range"}},
		"struct":            {struct{}{}, []string{`"x"`, "struct {}"}},
		"bytes":             {[]byte("a"), []string{"[]uint8"}},
		"in a list":         {[]any{1, struct{}{}}, []string{`"x"`, "element 1"}},
		"in a map":          {map[string]any{"k": struct{}{}}, []string{`"x"`, `key "k"`}},
		"not UTF-8":         {"\xff", []string{`"x"`, `"\xff"`, "UTF-8"}},
		"key in a map":      {map[string]any{"\xff": 1}, []string{`"\xff"`, "UTF-8"}},
		"pointer":           {new(int), []string{"*int"}},
		"typed list":        {[]string{"a"}, []string{"[]string"}},
		"complex":           {complex(1, 1), []string{"complex128"}},
		"list in arguments": {Arguments{"k": []int{1}}, []string{`key "k"`, "[]int"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := NormaliseArguments(map[string]any{"x": tc.in})
			refused(t, err, tc.essentials...)
		})
	}
	_, err := NormaliseArguments(map[string]any{"\xff": 1})
	refused(t, err, `"\xff"`, "UTF-8")
}

func TestNormaliseArgumentsCopies(t *testing.T) {
	t.Parallel()
	in := map[string]any{"list": []any{int64(1)}, "map": map[string]any{"k": int64(1)}}
	out, err := NormaliseArguments(in)
	if err != nil {
		t.Fatal(err)
	}
	in["list"].([]any)[0], in["map"].(map[string]any)["k"] = "changed", "changed"
	if CanonicalJSON(out) != `{"list":[1],"map":{"k":1}}` {
		t.Errorf("the copy shares its values: %v", out)
	}
}

func TestParseCanonicalRefuses(t *testing.T) {
	t.Parallel()
	for text, essential := range map[string]string{
		"":                     "ends too early",
		"5000 6000":            "more text after its end",
		"[1,]":                 "invalid character",
		`{"a":1,"a":2}`:        `"a" is there twice`,
		`{"a":1`:               "ends too early",
		"[1":                   "ends too early",
		`{"a"}`:                "invalid character",
		"nul":                  "",
		"1e999":                "out of range",
		"12345678901234567890": "out of range",
		strings.Repeat("[", 200) + strings.Repeat("]", 200): "deeper than 100",
	} {
		_, err := ParseCanonical(map[string]string{"x-foo": text})
		refused(t, err, `"x-foo"`, essential)
	}
}

func TestArgumentsJSON(t *testing.T) {
	t.Parallel()
	for _, none := range []Arguments{nil, {}} {
		if text, err := json.Marshal(none); err != nil || string(text) != "{}" {
			t.Errorf("no arguments are written as %s, %v", text, err)
		}
	}
	var a Arguments
	if err := json.Unmarshal([]byte(`{"n":9007199254740993,"s":"5000","f":1.5,"l":[1,{"m":true}]}`), &a); err != nil {
		t.Fatal(err)
	}
	want := Arguments{"n": int64(9007199254740993), "s": "5000", "f": 1.5, "l": []any{int64(1), map[string]any{"m": true}}}
	if !reflect.DeepEqual(a, want) {
		t.Errorf("read %#v", a)
	}
	refused(t, json.Unmarshal([]byte(`{"n":9223372036854775808}`), &a), `"n"`, "out of range")
	if err := json.Unmarshal([]byte(`[]`), &a); err == nil {
		t.Error("a list was read as arguments")
	}
}
