package sqs

import (
	"fmt"
	"testing"
	"time"
)

// TestBuried: a message is remembered until it was seen for the last time long
// ago, or begins again.
func TestBuried(t *testing.T) {
	t.Parallel()
	b, now := newBuried(), time.Now()
	b.add("a", 1, now)
	if !b.has("a", 2, now) || !b.has("a", 3, now.Add(buriedFor-1)) {
		t.Error("it was forgotten")
	}
	if b.has("a", 4, now.Add(2*buriedFor)) {
		t.Error("it was not seen for long, and is remembered")
	}
	b.add("a", 5, now)
	if b.has("a", 1, now) || b.has("a", 6, now) {
		t.Error("it was received less often than before: it has come back to be handled")
	}
	if b.has("b", 1, now) {
		t.Error("it was never there")
	}
}

// TestBuriedIsBounded: the ones that were seen longest ago are forgotten first.
func TestBuriedIsBounded(t *testing.T) {
	t.Parallel()
	b, now := newBuried(), time.Now()
	b.add("first", 1, now)
	for i := range buriedMost {
		if i == buriedMost/2 {
			b.has("first", 2, now)
		}
		b.add(fmt.Sprint(i), 1, now)
	}
	if len(b.ids) != buriedMost || b.order.Len() != buriedMost {
		t.Errorf("%d and %d are remembered", len(b.ids), b.order.Len())
	}
	if b.has("0", 2, now) || !b.has("first", 3, now) || !b.has("1", 2, now) {
		t.Error("the wrong ones were forgotten")
	}
}
