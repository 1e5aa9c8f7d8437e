package redeliver_test

import (
	"testing"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

func TestKeyFromHeader(t *testing.T) {
	t.Parallel()
	key := redeliver.KeyFromHeader("customer")
	for _, tt := range []struct {
		value any
		want  string
	}{
		{"c-1", "c-1"},
		{[]byte("c-1"), "c-1"},
		{"", ""},
		{nil, ""},
		{true, "true"},
		{int8(-5), "-5"},
		{int16(5), "5"},
		{int32(5), "5"},
		{int64(5), "5"},
		{5, "5"},
		{uint8(5), "5"},
		{uint16(5), "5"},
		{uint32(5), "5"},
		{uint64(5), "5"},
		{float32(0.1), "0.1"},
		{5.0, "5"},
		{1e21, "1000000000000000000000"},
		{[]any{"c-1"}, ""},
		{map[string]any{"id": 1}, ""},
		{time.Unix(1, 0), ""},
	} {
		if got := key(&redeliver.Message{Headers: map[string]any{"customer": tt.value}}); got != tt.want {
			t.Errorf("%T %v: %q, want %q", tt.value, tt.value, got, tt.want)
		}
	}
	if got := key(&redeliver.Message{}); got != "" {
		t.Errorf("without headers: %q", got)
	}
	if got := redeliver.KeyFromRoutingKey(&redeliver.Message{RoutingKey: "order.7"}); got != "order.7" {
		t.Errorf("routing key: %q", got)
	}
}
