package topology

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// The arguments of the contract, by AMQP name.
const (
	ArgQueueType          = "x-queue-type"
	ArgMessageTTL         = "x-message-ttl"
	ArgDeadLetterExchange = "x-dead-letter-exchange"
	ArgDeadLetterKey      = "x-dead-letter-routing-key"
	ArgDeadLetterStrategy = "x-dead-letter-strategy"
	ArgOverflow           = "x-overflow"
	ArgDeliveryLimit      = "x-delivery-limit"
	ArgMaxPriority        = "x-max-priority"
	ArgConsumerTimeout    = "x-consumer-timeout"
)

// Arguments are the arguments of a queue, exchange or binding. A value is one
// of the types that RabbitMQ's management API can carry: nil, bool, int64,
// float64, string, []any and map[string]any of these. Build them with
// [NormaliseArguments] where they come from outside.
type Arguments map[string]any

// NormaliseArguments returns a copy of args in the types of [Arguments]:
// integers of every width become int64, json.Number becomes int64 or float64,
// a float64 without a fraction becomes int64 (JSON does not tell them apart).
// Other types are refused by key.
func NormaliseArguments(args map[string]any) (Arguments, error) {
	out := make(Arguments, len(args))
	for key, value := range args {
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
	case nil, bool, string, int64:
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
	case float32:
		return normalise(float64(v))
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("%v is not a number RabbitMQ can hold", v)
		}
		if v == math.Trunc(v) && math.Abs(v) < 1<<63 {
			return int64(v), nil
		}
		return v, nil
	case json.Number:
		if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return n, nil
		}
		f, err := v.Float64()
		if err != nil {
			return nil, fmt.Errorf("%s is out of range: RabbitMQ holds 64-bit integers and floats", v)
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

// CanonicalJSON writes a value of [Arguments] as JSON in one form: keys
// sorted, no spaces, nothing escaped that need not be. Two values are the same
// AMQP value exactly when this text is the same: the number 5000 is 5000, the
// string is "5000".
func CanonicalJSON(value any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		// Only reachable with a value that is no AMQP value, which NormaliseArguments refuses.
		return fmt.Sprintf("%q", fmt.Sprint(value))
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
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
		dec := json.NewDecoder(bytes.NewReader([]byte(text)))
		dec.UseNumber()
		var value any
		if err := dec.Decode(&value); err != nil {
			return nil, fmt.Errorf("argument %q: %q is not JSON: %w", key, text, err)
		}
		raw[key] = value
	}
	return NormaliseArguments(raw)
}

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
	for key, value := range a {
		out[key] = value
	}
	return out
}
