package topology

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The arguments of the contract, by AMQP name.
const (
	ArgQueueType            = "x-queue-type"
	ArgMessageTTL           = "x-message-ttl"
	ArgDeadLetterExchange   = "x-dead-letter-exchange"
	ArgDeadLetterKey        = "x-dead-letter-routing-key"
	ArgDeadLetterStrategy   = "x-dead-letter-strategy"
	ArgOverflow             = "x-overflow"
	ArgDeliveryLimit        = "x-delivery-limit"
	ArgMaxPriority          = "x-max-priority"
	ArgConsumerTimeout      = "x-consumer-timeout"
	ArgDelayedRetryType     = "x-delayed-retry-type"
	ArgDelayedRetryMin      = "x-delayed-retry-min"
	ArgDelayedRetryMax      = "x-delayed-retry-max"
	ArgSingleActiveConsumer = "x-single-active-consumer"
)

// Arguments are the arguments of a queue, exchange or binding. A value is one
// of the types that RabbitMQ's management API can carry: nil, bool, int64,
// float64, string, []any and map[string]any of these. Build them with
// [NormaliseArguments] where they come from outside.
type Arguments map[string]any

// NormaliseArguments returns a copy of args in the types of [Arguments]:
// integers of every width become int64, json.Number becomes int64 or float64,
// a float64 without a fraction becomes int64 (JSON does not tell them apart).
// Other types, integers beyond 64 bits and text that is not UTF-8 (which the
// management API cannot carry) are refused by key.
func NormaliseArguments(args map[string]any) (Arguments, error) {
	out := make(Arguments, len(args))
	for key, value := range args {
		if !utf8.ValidString(key) {
			return nil, fmt.Errorf("argument %q: its name is not valid UTF-8", key)
		}
		v, err := normalise(value)
		if err != nil {
			return nil, fmt.Errorf("argument %q: %w", key, err)
		}
		out[key] = v
	}
	return out, nil
}

func normalise(value any) (any, error) {
	switch v := value.(type) {
	case nil, bool, int64:
		return v, nil
	case string:
		if !utf8.ValidString(v) {
			return nil, fmt.Errorf("%q is not valid UTF-8", v)
		}
		return v, nil
	case int:
		return int64(v), nil
	case int8:
		return int64(v), nil
	case int16:
		return int64(v), nil
	case int32:
		return int64(v), nil
	case uint8:
		return int64(v), nil
	case uint16:
		return int64(v), nil
	case uint32:
		return int64(v), nil
	case uint:
		return normalise(uint64(v))
	case uint64:
		if v > math.MaxInt64 {
			return nil, outOfRange(strconv.FormatUint(v, 10))
		}
		return int64(v), nil
	case float32:
		return normalise(float64(v))
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("%v is not a number RabbitMQ can hold", v)
		}
		if isInt64(v) {
			return int64(v), nil
		}
		return v, nil
	case json.Number:
		if !strings.ContainsAny(v.String(), ".eE") {
			n, err := strconv.ParseInt(v.String(), 10, 64)
			if err != nil {
				return nil, outOfRange(v.String())
			}
			return n, nil
		}
		f, err := v.Float64()
		if err != nil {
			return nil, outOfRange(v.String())
		}
		return normalise(f)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			var err error
			if list[i], err = normalise(v[i]); err != nil {
				return nil, fmt.Errorf("element %d: %w", i, err)
			}
		}
		return list, nil
	case map[string]any:
		m := make(map[string]any, len(v))
		for key := range v {
			if !utf8.ValidString(key) {
				return nil, fmt.Errorf("key %q is not valid UTF-8", key)
			}
			var err error
			if m[key], err = normalise(v[key]); err != nil {
				return nil, fmt.Errorf("key %q: %w", key, err)
			}
		}
		return m, nil
	case Arguments:
		return normalise(map[string]any(v))
	default:
		return nil, fmt.Errorf("a value of type %T cannot be an AMQP argument", value)
	}
}

func outOfRange(number string) error {
	return fmt.Errorf("%s is out of range: RabbitMQ holds 64-bit integers and floats", number)
}

// isInt64 reports whether f is a whole number that an int64 can hold.
func isInt64(f float64) bool { return f == math.Trunc(f) && f >= -1<<63 && f < 1<<63 }

// CanonicalJSON writes a value of [Arguments] as JSON in one form: keys
// sorted, no spaces, nothing escaped that need not be. Two values are the same
// AMQP value exactly when this text is the same: the number 5000 is 5000, the
// string is "5000", and a whole number too large for 64 bits has an exponent,
// because it can only be a float.
func CanonicalJSON(value any) string { return string(appendCanonical(nil, value)) }

func appendCanonical(b []byte, value any) []byte {
	switch v := value.(type) {
	case int64:
		return strconv.AppendInt(b, v, 10)
	case float64:
		if v == math.Trunc(v) && !isInt64(v) && !math.IsInf(v, 0) {
			return strconv.AppendFloat(b, v, 'e', -1, 64)
		}
		return appendJSON(b, v)
	case []any:
		b = append(b, '[')
		for i, element := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendCanonical(b, element)
		}
		return append(b, ']')
	case Arguments:
		return appendCanonical(b, map[string]any(v))
	case map[string]any:
		b = append(b, '{')
		for i, key := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendJSON(b, key), ':')
			b = appendCanonical(b, v[key])
		}
		return append(b, '}')
	default:
		return appendJSON(b, v)
	}
}

func appendJSON(b []byte, value any) []byte {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		// Only reachable with a value that is no AMQP value, which NormaliseArguments refuses.
		return strconv.AppendQuote(b, fmt.Sprint(value))
	}
	return append(b, bytes.TrimSuffix(text.Bytes(), []byte("\n"))...)
}

// Canonical returns every argument in the form of [CanonicalJSON], by key.
func (a Arguments) Canonical() map[string]string {
	out := make(map[string]string, len(a))
	for key, value := range a {
		out[key] = CanonicalJSON(value)
	}
	return out
}

// ParseCanonical reads what [Arguments.Canonical] wrote.
func ParseCanonical(args map[string]string) (Arguments, error) {
	raw := make(map[string]any, len(args))
	for key, text := range args {
		value, err := decodeStrict([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("argument %q: %q is not JSON: %w", key, text, err)
		}
		raw[key] = value
	}
	return NormaliseArguments(raw)
}

// MarshalJSON implements json.Marshaler: the form of [CanonicalJSON]. No
// arguments are an empty object, whether the map is nil or not.
func (a Arguments) MarshalJSON() ([]byte, error) { return appendCanonical(nil, a), nil }

// UnmarshalJSON implements json.Unmarshaler and keeps integers exact.
func (a *Arguments) UnmarshalJSON(text []byte) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var raw map[string]any
	if err := dec.Decode(&raw); err != nil {
		return err
	}
	normal, err := NormaliseArguments(raw)
	if err != nil {
		return err
	}
	*a = normal
	return nil
}

func (a Arguments) clone() Arguments {
	out := make(Arguments, len(a))
	maps.Copy(out, a)
	return out
}
