package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
	"github.com/redeliver/terraform-provider-redeliver/redeliver/rabbitmq"
)

// order is what the demo's messages say.
type order struct {
	Wish string `json:"wish"`
}

// story is a message of the demo and how it is expected to end.
type story struct {
	id, body, ends string
}

var stories = []story{
	{"ok", `{"wish":"ack"}`, "handled at once"},
	{"flaky", `{"wish":"fail twice"}`, "fails twice, waits tiers 0 and 1, then succeeds"},
	{"hopeless", `{"wish":"fail"}`, "fails always: three retries, then the DLQ"},
	{"early", `{"wish":"defer twice"}`, "is deferred twice without counting, then succeeds"},
	{"refused", `{"wish":"reject"}`, "is rejected: the DLQ at once"},
	{"unreadable", `not JSON`, "does not decode: parked, before the handler sees it"},
}

// handler decides by what the order wishes. It keeps how often a message was deferred, which the broker does not count.
type handler struct {
	mu       sync.Mutex
	deferred map[string]int
}

func (h *handler) handle(_ context.Context, o order, msg *redeliver.Message) redeliver.Outcome {
	switch o.Wish {
	case "fail twice":
		if msg.RetryCount < 2 {
			return redeliver.Retry(errors.New("the payment service is away"))
		}
	case "fail":
		return redeliver.Retry(errors.New("the payment service is gone"))
	case "defer twice":
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.deferred[msg.ID]++; h.deferred[msg.ID] <= 2 {
			return redeliver.Defer()
		}
	case "reject":
		return redeliver.Reject(errors.New("the article does not exist"))
	}
	return redeliver.Ack()
}

// consume publishes the stories, lets a consumer live on them until each has ended, and counts where they are.
func consume(ctx context.Context, b *broker, consumerURL string, manifest redeliver.Manifest) error {
	publisherURL, err := b.urlOf(url.UserPassword(b.username, b.password))
	if err != nil {
		return err
	}
	conn, err := amqp.DialConfig(publisherURL, amqp.Config{Heartbeat: 10 * time.Second})
	if err != nil {
		return err
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	if err := publish(ctx, ch); err != nil {
		return err
	}

	start := time.Now()
	ended := make(chan struct{}, len(stories))
	h := &handler{deferred: map[string]int{}}
	consumer, err := rabbitmq.Open(ctx, rabbitmq.Config{
		URL: consumerURL, Manifest: manifest, Handler: redeliver.JSON(h.handle),
		Consumer: redeliver.Config{
			Logger: slog.New(slog.DiscardHandler), // the events below are the demo's own log
			OnEvent: func(e redeliver.Event) {
				if e.Message == nil {
					return
				}
				tell(start, e)
				switch e.Kind {
				case redeliver.EventAcked, redeliver.EventDeadLettered, redeliver.EventParked:
					ended <- struct{}{}
				}
			},
		},
	})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- consumer.Run(running) }()
	for range stories {
		select {
		case <-ended:
		case err := <-done:
			return errors.Join(errors.New("the consumer ended early"), err)
		case <-time.After(time.Minute):
			return errors.New("after a minute some messages have not ended")
		}
	}
	stop()
	if err := <-done; err != nil {
		return err
	}
	return count(ctx, ch)
}

func publish(ctx context.Context, ch *amqp.Channel) error {
	if err := ch.Confirm(false); err != nil {
		return err
	}
	for _, s := range stories {
		fmt.Printf("publish %-11s %-24s %s\n", s.id, s.body, s.ends)
		confirmation, err := ch.PublishWithDeferredConfirmWithContext(ctx, "shop.events", "order.placed", true, false, amqp.Publishing{
			MessageId: s.id, Body: []byte(s.body), ContentType: "application/json", DeliveryMode: amqp.Persistent, Timestamp: time.Now(),
		})
		if err != nil {
			return err
		}
		if ok, err := confirmation.WaitContext(ctx); err != nil || !ok {
			return fmt.Errorf("the broker did not take message %s: %w", s.id, err)
		}
	}
	fmt.Println()
	return nil
}

// tell prints what happened to a message.
func tell(start time.Time, e redeliver.Event) {
	text := string(e.Kind)
	if e.Delay > 0 {
		text += " in " + e.Delay.Round(time.Millisecond).String()
	}
	if e.Err != nil {
		text += " (" + e.Err.Error() + ")"
	}
	fmt.Printf("%s  %-11s attempt %d  %s\n", since(start), e.Message.ID, e.Message.Attempt(), text)
}

// count asks the broker where the messages are. A quorum queue dead-letters at least once and in its own time, so that
// the last ones may still be on their way.
func count(ctx context.Context, ch *amqp.Channel) error {
	fmt.Println()
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	for _, want := range []struct {
		queue    string
		messages int
	}{{"orders", 0}, {"orders-dlq", 2}, {"orders-parked", 1}} {
		for {
			q, err := ch.QueueDeclarePassive(want.queue, true, false, false, false, nil)
			if err != nil {
				return err
			}
			if q.Messages == want.messages {
				fmt.Printf("%-14s %d messages\n", want.queue, q.Messages)
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("queue %s holds %d messages and %d were expected", want.queue, q.Messages, want.messages)
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	return nil
}
