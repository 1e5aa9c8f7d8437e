package redeliver_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// number is what the tests decode to.
type number struct{ N uint32 }

// bigEndian is a codec of an application's own format.
type bigEndian struct{}

var errTooShort = errors.New("four bytes are needed")

func (bigEndian) Decode(msg *redeliver.Message) (number, error) {
	if len(msg.Body) < 4 {
		return number{}, errTooShort
	}
	return number{N: binary.BigEndian.Uint32(msg.Body)}, nil
}

func TestTyped(t *testing.T) {
	t.Parallel()
	var got number
	handler := redeliver.Typed(bigEndian{}, func(_ context.Context, n number, msg *redeliver.Message) redeliver.Outcome {
		got = n
		return redeliver.Retry(errors.New(msg.ID))
	})
	if o := handler.Handle(t.Context(), &redeliver.Message{ID: "m", Body: []byte{0, 0, 1, 2}}); o.String() != "retry: m" || got.N != 258 {
		t.Errorf("%v, %+v", o, got)
	}
	o := handler.Handle(t.Context(), &redeliver.Message{Body: []byte{1}})
	var decode *redeliver.DecodeError
	if o.Kind() != redeliver.OutcomePark || !errors.As(o.Err(), &decode) || !errors.Is(o.Err(), errTooShort) || decode.Into != "redeliver_test.number" {
		t.Errorf("%v", o)
	}
}

func TestTypedObeysErrors(t *testing.T) {
	t.Parallel()
	away := fmt.Errorf("asking the schema registry: %w", &rateLimited{})
	for name, tt := range map[string]struct {
		err    error
		kind   redeliver.OutcomeKind
		decode bool // the error is a *DecodeError
	}{
		"ordinary":          {errBoom, redeliver.OutcomePark, true},
		"outcomer":          {away, redeliver.OutcomeRetry, false},
		"permanent":         {redeliver.Permanent(errBoom), redeliver.OutcomeReject, false},
		"is permanent":      {fmt.Errorf("%w: never", redeliver.ErrPermanent), redeliver.OutcomeReject, false},
		"says ack":          {fmt.Errorf("a tombstone: %w", done{}), redeliver.OutcomeAck, false},
		"a decode error":    {&redeliver.DecodeError{Into: "Avro", Err: errBoom}, redeliver.OutcomePark, true},
		"joined, outermost": {errors.Join(errBoom, away), redeliver.OutcomeRetry, false},
	} {
		codec := redeliver.CodecFunc[int](func(*redeliver.Message) (int, error) { return 0, tt.err })
		o := redeliver.Typed(codec, func(context.Context, int, *redeliver.Message) redeliver.Outcome {
			t.Errorf("%s: the handler was called", name)
			return redeliver.Ack()
		}).Handle(t.Context(), &redeliver.Message{})
		var decode *redeliver.DecodeError
		if o.Kind() != tt.kind || errors.As(o.Err(), &decode) != tt.decode || tt.kind != redeliver.OutcomeAck && !errors.Is(o.Err(), tt.err) {
			t.Errorf("%s: %v", name, o)
		}
		if tt.decode && strings.Count(o.Err().Error(), "does not decode") != 1 {
			t.Errorf("%s: %v", name, o.Err())
		}
	}
}

func TestTypedNamesInterfaces(t *testing.T) {
	t.Parallel()
	o := redeliver.JSON(func(context.Context, any, *redeliver.Message) redeliver.Outcome { return redeliver.Ack() }).
		Handle(t.Context(), &redeliver.Message{Body: []byte("{")})
	if !strings.Contains(o.Err().Error(), "JSON (interface {})") {
		t.Error(o)
	}
}

func TestTypedNeedsBoth(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(){
		"no codec": func() {
			redeliver.Typed[int](nil, func(context.Context, int, *redeliver.Message) redeliver.Outcome { return redeliver.Ack() })
		},
		"no handler": func() { redeliver.JSON[int](nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			make()
		}()
	}
}
