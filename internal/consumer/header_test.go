package consumer

import (
	"testing"
	"time"
)

// TestDeliveryCount: the broker's count is an integer; a client that reads it
// in one width only sees none.
func TestDeliveryCount(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		header any
		want   int64
	}{
		{int64(3), 3},
		{int32(3), 3},
		{int16(3), 3},
		{int8(3), 3},
		{byte(3), 3},
		{uint16(3), 3},
		{uint32(3), 3},
		{int64(-3), -3},
		{"3", 3},
		{3.0, 0},
		{nil, 0},
		{true, 0},
		{map[string]any{}, 0},
		{[]any{int64(3)}, 0},
		{time.Unix(3, 0), 0},
	} {
		if got := DeliveryCount(map[string]any{"x-delivery-count": tt.header}); got != tt.want {
			t.Errorf("%T %v reads as %d, want %d", tt.header, tt.header, got, tt.want)
		}
	}
	if got := DeliveryCount(nil); got != 0 {
		t.Errorf("no headers read as %d", got)
	}
}
