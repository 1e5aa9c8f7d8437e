package rabbitmq

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/consumer"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

func TestFillDelivery(t *testing.T) {
	t.Parallel()
	now := time.Now()
	from := amqp091.Delivery{
		Headers:     amqp091.Table{"plain": int64(1), "x-delivery-count": int64(2), "table": amqp091.Table{"deep": []any{amqp091.Table{"er": "x"}}}},
		ContentType: "ct", ContentEncoding: "ce", Priority: 4, CorrelationId: "c", ReplyTo: "r", Expiration: "1", MessageId: "m",
		Timestamp: now, Type: "t", UserId: "u", AppId: "a", DeliveryTag: 7, Redelivered: true, Exchange: "x", RoutingKey: "k", Body: []byte("b"),
	}
	var got consumer.Delivery
	fillDelivery(&got, &from, now)
	want := consumer.Delivery{
		Count: 2, Tag: 7, Received: now,
		Message: redeliver.Message{
			Body: []byte("b"), Exchange: "x", RoutingKey: "k", ID: "m", Type: "t", ContentType: "ct", ContentEncoding: "ce", CorrelationID: "c",
			ReplyTo: "r", AppID: "a", UserID: "u", Expiration: "1", Timestamp: now, Priority: 4, Redelivered: true,
			Headers: map[string]any{"plain": int64(1), "x-delivery-count": int64(2), "table": map[string]any{"deep": []any{map[string]any{"er": "x"}}}},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}
	from.Headers = nil
	fillDelivery(&got, &from, now)
	if got.Message.Headers != nil || got.Count != 0 {
		t.Errorf("without headers: %+v", got)
	}
}

func TestCopyOf(t *testing.T) {
	t.Parallel()
	m := &redeliver.Message{
		Body: []byte("b"), Exchange: "x", RoutingKey: "k", ID: "m", Type: "t", ContentType: "ct", ContentEncoding: "ce", CorrelationID: "c",
		ReplyTo: "r", AppID: "a", UserID: "u", Expiration: "1", Timestamp: time.Unix(5, 0), Priority: 4,
		Headers: map[string]any{
			"kept": map[string]any{"deep": []any{map[string]any{"er": "x"}}}, "replaced": "old", "cc": "kept: headers are case-sensitive",
			"x-delivery-count": int64(1), "x-acquired-count": int64(1), "x-death": []any{}, "x-first-death-queue": "q", "x-last-death-reason": "r",
			"CC": []any{"a"}, "BCC": []any{"b"}, "left out": "x",
		},
	}
	got := copyOf(consumer.Copy{
		Message: m, Set: map[string]any{"replaced": "new", "added": int64(1)}, Unset: []string{"left out", "replaced", "not there"},
	})
	want := amqp091.Publishing{
		Headers: amqp091.Table{
			"kept": amqp091.Table{"deep": []any{amqp091.Table{"er": "x"}}}, "cc": "kept: headers are case-sensitive",
			"replaced": "new", "added": int64(1), "x-redeliver-expiration": "1", "x-redeliver-user-id": "u",
		},
		ContentType: "ct", ContentEncoding: "ce", DeliveryMode: amqp091.Persistent, Priority: 4, CorrelationId: "c", ReplyTo: "r", MessageId: "m",
		Timestamp: time.Unix(5, 0), Type: "t", AppId: "a", Body: []byte("b"),
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}
	if err := got.Headers.Validate(); err != nil {
		t.Error(err)
	}
	if len(m.Headers) != 11 {
		t.Error("the message's own headers were changed")
	}
	if got := copyOf(consumer.Copy{Message: m, Priority: new(uint8)}); got.Priority != 0 {
		t.Errorf("priority %d", got.Priority)
	}
}

func TestLostError(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		reply *amqp091.Error
		want  consumer.LostReason
	}{
		"closed without a word": {nil, consumer.LostConnection},
		"network":               {&amqp091.Error{Code: amqp091.FrameError, Reason: "EOF"}, consumer.LostConnection},
		"operator":              {&amqp091.Error{Code: amqp091.ConnectionForced, Reason: "CONNECTION_FORCED - Closed via management plugin", Server: true}, consumer.LostConnection},
		"timeout": {&amqp091.Error{
			Code: amqp091.PreconditionFailed, Server: true, Recover: true,
			Reason: "PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out. Timeout value used: 4000 ms.",
		}, consumer.LostConsumerTimeout},
		"unknown tag": {&amqp091.Error{Code: amqp091.PreconditionFailed, Server: true, Recover: true, Reason: "PRECONDITION_FAILED - unknown delivery tag 7"}, consumer.LostChannel},
	} {
		var lost *consumer.LostError
		if err := lostError(tt.reply); !errors.As(err, &lost) || lost.Reason != tt.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestIsSince43(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{
		"3.10.8": false, "3.13.7": false, "4.0.5": false, "4.2.6": false, "4.3.0": true, "4.3.6": true, "4.10.0": true, "5.0.0": true, "4.3": true,
		"4.3.0-rc.1": true, "": false, "x": false,
	} {
		if got := isSince43(version); got != want {
			t.Errorf("%q: %v", version, got)
		}
	}
}

func TestNewBroker(t *testing.T) {
	t.Parallel()
	base := Config{Topic: "orders", VHost: "shop", Queue: "orders"}
	for raw, wantErr := range map[string]bool{
		"amqp://u:p@h": false, "amqp://u:p@h/": false, "amqp://u:p@h/shop": false, "amqps://u:p@h:1/shop?heartbeat=5": false,
		"amqp://u:p@h/other": true, "amqp://u:p@h/%2f": true, "": true, "h:5672": true, "amqp://u:p%zz@h": true, "amqp://u:p ss@h": true,
	} {
		cfg := base
		cfg.URL = raw
		if _, err := NewBroker(cfg); (err != nil) != wantErr {
			t.Errorf("%q: %v", raw, err)
		}
	}
	root := base
	root.VHost, root.URL = "/", "amqp://u:p@h/%2F"
	if _, err := NewBroker(root); err != nil {
		t.Error(err)
	}
	several := base
	several.URL, several.Addresses = "amqp://u:p@h:1/shop", []string{"i:2", "j"}
	if _, err := NewBroker(several); err != nil {
		t.Error(err)
	}
	several.Addresses = []string{"amqp://u:secret@i"}
	if _, err := NewBroker(several); err == nil {
		t.Error("a URL passed as an address")
	}
}
