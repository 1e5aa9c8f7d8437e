package sqs

import (
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/consumer"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// TestAttributesAndBack: a message attribute becomes a header of a Go type, and
// that the same attribute.
func TestAttributesAndBack(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		attribute types.MessageAttributeValue
		header    any
	}{
		"string":          {text(typeString, "x"), "x"},
		"integer":         {text(typeNumber, "-42"), int64(-42)},
		"fraction":        {text(typeNumber, "1.5"), 1.5},
		"written unlike":  {text(typeNumber, "1.50"), redeliver.Attribute{Type: typeNumber, Text: "1.50"}},
		"large":           {text(typeNumber, "99999999999999999999999999999999999999"), redeliver.Attribute{Type: typeNumber, Text: "99999999999999999999999999999999999999"}},
		"exponent":        {text(typeNumber, "1e3"), redeliver.Attribute{Type: typeNumber, Text: "1e3"}},
		"labelled":        {text("Number.int", "7"), redeliver.Attribute{Type: "Number.int", Text: "7"}},
		"labelled text":   {text("String.json", "{}"), redeliver.Attribute{Type: "String.json", Text: "{}"}},
		"labelled binary": {types.MessageAttributeValue{DataType: aws.String("Binary.png"), BinaryValue: []byte{0xff, 0}}, redeliver.Attribute{Type: "Binary.png", Text: "\xff\x00"}},
	} {
		header := headerOf(test.attribute)
		if header != test.header {
			t.Errorf("%s: the header is %#v", name, header)
		}
		back, ok := attributeOf(header)
		if !ok || *back.DataType != *test.attribute.DataType || aws.ToString(back.StringValue) != aws.ToString(test.attribute.StringValue) ||
			!slices.Equal(back.BinaryValue, test.attribute.BinaryValue) {
			t.Errorf("%s: the attribute is %+v", name, back)
		}
	}
	header := headerOf(types.MessageAttributeValue{DataType: aws.String(typeBinary), BinaryValue: []byte{0xff, 0}})
	if bytes, ok := header.([]byte); !ok || !slices.Equal(bytes, []byte{0xff, 0}) {
		t.Errorf("binary: %#v", header)
	}
}

func text(dataType, value string) types.MessageAttributeValue {
	return types.MessageAttributeValue{DataType: &dataType, StringValue: &value}
}

// TestAttributesOfACopy: a message's own attributes come first, and what the
// service set is none of them.
func TestAttributesOfACopy(t *testing.T) {
	t.Parallel()
	headers := map[string]any{headerTrace: "Root=1", consumer.HeaderDeadLetterSource: "arn", "empty": "", "table": map[string]any{}, "gone": "x"}
	for i := range 9 {
		headers["a"+strconv.Itoa(i)] = int64(i)
	}
	got, left := attributesOf(consumer.Copy{
		Message: &redeliver.Message{Headers: headers}, Set: map[string]any{"b-reason": "boom", "a0": "replaced", "c-more": "x"}, Unset: []string{"gone"},
	})
	want := []string{"a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8", "b-reason"}
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) || !slices.Equal(left, []string{"c-more"}) {
		t.Errorf("%q, and left out: %q", names, left)
	}
	if *got["a0"].StringValue != "replaced" {
		t.Errorf("%+v", got["a0"])
	}
}

// TestAttributesThatAreRefused: only the service's own names are left out, and no
// text has characters that the service refuses.
func TestAttributesThatAreRefused(t *testing.T) {
	t.Parallel()
	got, _ := attributesOf(consumer.Copy{
		Message: &redeliver.Message{Headers: map[string]any{"AWSAccount": "1", "AWS.x": "2", headerTrace: "3"}},
		Set:     map[string]any{"error": "bad \x1b[31m\x00\uFFFE\tthing"},
	})
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, []string{"AWSAccount", "error"}) {
		t.Errorf("%q", names)
	}
	if text := *got["error"].StringValue; text != "bad \uFFFD[31m\uFFFD\uFFFD\tthing" {
		t.Errorf("%q", text)
	}
}
