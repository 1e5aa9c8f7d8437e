package sqs

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/consumer"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// The data types of message attributes. A custom one has a label after a dot.
const (
	typeString = "String"
	typeNumber = "Number"
	typeBinary = "Binary"
)

// headerTrace is the one system attribute that a sender can set.
const headerTrace = "AWSTraceHeader"

// maxAttributes is how many attributes a message can have.
const maxAttributes = 10

// SystemAttributes are what a receive asks for besides the message.
func SystemAttributes() []types.MessageSystemAttributeName {
	return []types.MessageSystemAttributeName{
		types.MessageSystemAttributeNameApproximateReceiveCount, types.MessageSystemAttributeNameSentTimestamp,
		types.MessageSystemAttributeNameMessageGroupId, types.MessageSystemAttributeNameAWSTraceHeader,
		types.MessageSystemAttributeNameDeadLetterQueueSourceArn,
	}
}

// receives is how often a message was received, this time included.
func receives(from *types.Message) int64 {
	n, _ := strconv.ParseInt(from.Attributes[string(types.MessageSystemAttributeNameApproximateReceiveCount)], 10, 64)
	return max(1, n)
}

// MessageOf is a message as handlers get it. Its routing key is its message
// group.
func MessageOf(from *types.Message) redeliver.Message {
	m := redeliver.Message{
		ID: aws.ToString(from.MessageId), Body: []byte(aws.ToString(from.Body)), Headers: headersOf(from),
		RoutingKey:  from.Attributes[string(types.MessageSystemAttributeNameMessageGroupId)],
		Redelivered: receives(from) > 1,
	}
	if ms, err := strconv.ParseInt(from.Attributes[string(types.MessageSystemAttributeNameSentTimestamp)], 10, 64); err == nil && ms > 0 {
		m.Timestamp = time.UnixMilli(ms)
	}
	return m
}

func headersOf(from *types.Message) map[string]any {
	source := from.Attributes[string(types.MessageSystemAttributeNameDeadLetterQueueSourceArn)]
	trace := from.Attributes[headerTrace]
	if len(from.MessageAttributes) == 0 && source == "" && trace == "" {
		return nil
	}
	headers := make(map[string]any, len(from.MessageAttributes)+2)
	for name, value := range from.MessageAttributes {
		headers[name] = headerOf(value)
	}
	if source != "" {
		headers[consumer.HeaderDeadLetterSource] = source
	}
	if trace != "" {
		headers[headerTrace] = trace
	}
	return headers
}

// headerOf is the value of an attribute: an int64, a float64, a string or bytes
// where that says all there is to say, else a redeliver.Attribute.
func headerOf(value types.MessageAttributeValue) any {
	text := aws.ToString(value.StringValue)
	switch dataType := aws.ToString(value.DataType); dataType {
	case typeString:
		return text
	case typeBinary:
		return value.BinaryValue
	case typeNumber:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && strconv.FormatInt(n, 10) == text {
			return n
		}
		if x, err := strconv.ParseFloat(text, 64); err == nil && number(x) == text {
			return x
		}
		return redeliver.Attribute{Type: dataType, Text: text}
	default:
		return redeliver.Attribute{Type: dataType, Text: text + string(value.BinaryValue)} // it has one of them
	}
}

func number(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// attributeOf is the attribute that a header becomes; ok is false for what no
// attribute can hold.
func attributeOf(value any) (attribute types.MessageAttributeValue, ok bool) {
	text := func(dataType, text string) (types.MessageAttributeValue, bool) {
		return types.MessageAttributeValue{DataType: aws.String(dataType), StringValue: aws.String(text)}, text != ""
	}
	switch v := value.(type) {
	case string:
		return text(typeString, legal(v))
	case []byte:
		return types.MessageAttributeValue{DataType: aws.String(typeBinary), BinaryValue: v}, len(v) > 0
	case bool:
		return text(typeString, strconv.FormatBool(v))
	case int:
		return text(typeNumber, strconv.Itoa(v))
	case int32:
		return text(typeNumber, strconv.FormatInt(int64(v), 10))
	case int64:
		return text(typeNumber, strconv.FormatInt(v, 10))
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return text(typeString, number(v))
		}
		return text(typeNumber, number(v))
	case redeliver.Attribute:
		if strings.HasPrefix(v.Type, typeBinary) {
			return types.MessageAttributeValue{DataType: aws.String(v.Type), BinaryValue: []byte(v.Text)}, v.Text != ""
		}
		return text(v.Type, v.Text)
	default:
		return types.MessageAttributeValue{}, false
	}
}

// legal is a text with every character replaced that the service takes in no
// text, such as those that colour a terminal. What came from the service has none.
func legal(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t', r == '\n', r == '\r', r >= ' ' && r <= 0xD7FF, r >= 0xE000 && r <= 0xFFFD, r >= 0x10000 && r <= utf8.MaxRune:
			return r
		default:
			return utf8.RuneError
		}
	}, text)
}

// attributesOf are the attributes of a copy: the message's own, and those that
// say why it failed as far as there is room. left are the names of those that
// there is no room for.
func attributesOf(c consumer.Copy) (attributes map[string]types.MessageAttributeValue, left []string) {
	attributes = make(map[string]types.MessageAttributeValue)
	own := maps.Clone(c.Message.Headers)
	for _, name := range c.Unset {
		delete(own, name)
	}
	for _, headers := range []map[string]any{own, c.Set} {
		for _, name := range slices.Sorted(maps.Keys(headers)) { // which is left out is not by chance
			attribute, ok := attributeOf(headers[name])
			if !ok || strings.HasPrefix(name, "AWS.") || name == headerTrace {
				continue
			}
			if _, replaces := attributes[name]; !replaces && len(attributes) >= maxAttributes {
				left = append(left, name)
				continue
			}
			attributes[name] = attribute
		}
	}
	return attributes, left
}

// size is what a message counts, in bytes.
func size(body string, attributes map[string]types.MessageAttributeValue) int {
	n := len(body)
	for name, value := range attributes {
		n += len(name) + len(aws.ToString(value.DataType)) + len(aws.ToString(value.StringValue)) + len(value.BinaryValue)
	}
	return n
}
