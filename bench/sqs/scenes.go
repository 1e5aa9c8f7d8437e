package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/redeliver/terraform-provider-redeliver/bench/results"
	"github.com/redeliver/terraform-provider-redeliver/internal/sqstest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
	"github.com/redeliver/terraform-provider-redeliver/redeliver/sqs"
)

// The goals: requests a message at full batches, and requests a minute of a poller that has nothing to do.
const (
	goalPerMessage = 0.25
	goalIdle       = 3
	// floorPart is what a request for 10 messages is of each.
	floorPart = 0.1
	idleFor   = time.Minute
)

// scene is one run.
type scene struct {
	name     string
	messages int
	fifo     bool
	lease    time.Duration
	workers  int
	handle   redeliver.HandlerFunc
	// floors are the least requests a message of each kind; nil for the idle run.
	floors map[string]float64
	// goal is for all requests together; 0 is none.
	goal float64
}

func acks(context.Context, *redeliver.Message) redeliver.Outcome { return redeliver.Ack() }

// takes is a handler that takes so long.
func takes(d time.Duration) redeliver.HandlerFunc {
	return func(ctx context.Context, _ *redeliver.Message) redeliver.Outcome {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return redeliver.Ack()
		case <-ctx.Done():
			return redeliver.Retry(ctx.Err())
		}
	}
}

func retriesOnce(_ context.Context, m *redeliver.Message) redeliver.Outcome {
	if m.RetryCount == 0 {
		return redeliver.Retry(errors.New("once"))
	}
	return redeliver.Ack()
}

func scenes(messages int) []scene {
	plain := map[string]float64{receive: floorPart, remove: floorPart, visibility: 0, heartbeat: 0}
	return []scene{
		{name: "ack", messages: messages, workers: 8, handle: acks, floors: plain, goal: goalPerMessage},
		{name: "ack_20ms", messages: messages / 5, workers: 32, handle: takes(20 * time.Millisecond), floors: plain, goal: goalPerMessage},
		{name: "ack_fifo", messages: messages / 5, workers: 8, fifo: true, handle: acks, floors: plain}, // batches end with groups
		{
			name: "retry_once", messages: messages / 5, workers: 8, handle: retriesOnce,
			floors: map[string]float64{receive: 2 * floorPart, remove: floorPart, visibility: floorPart, heartbeat: 0},
		},
		{ // the handler takes one and a half times the visibility timeout: three halves, two of them extended
			name: "slow", messages: 200, workers: 100, lease: 6 * time.Second, handle: takes(9 * time.Second),
			floors: map[string]float64{receive: floorPart, remove: floorPart, visibility: 0, heartbeat: 2 * floorPart},
		},
		{name: "idle", workers: 8, handle: acks},
	}
}

// figures are what was counted, for each message or, of an idle consumer, in a minute.
func (s scene) figures(counts map[string]int) []results.Figure {
	figure := func(name string, value, floor float64, unit string) results.Figure {
		f := results.Figure{Name: name, Value: value, Unit: unit, Baseline: floor}
		if floor > 0 {
			f.Ratio = value / floor
		}
		return f
	}
	if s.floors == nil {
		n := 0
		for _, count := range counts {
			n += count
		}
		return []results.Figure{figure("requests", float64(n)/idleFor.Minutes(), goalIdle, "requests/minute; baseline: the longest polls")}
	}
	const unit = "requests/message; baseline: the floor"
	var list []results.Figure
	all, floor := 0, 0.0
	for _, kind := range slices.Sorted(maps.Keys(s.floors)) {
		list = append(list, figure(kind, float64(counts[kind])/float64(s.messages), s.floors[kind], unit))
		all, floor = all+counts[kind], floor+s.floors[kind]
	}
	return append(list, figure("requests", float64(all)/float64(s.messages), floor, unit))
}

func (s scene) verdict(f results.Figure) string {
	goal := s.goal
	if s.floors == nil {
		goal = goalIdle
	}
	switch {
	case goal == 0 || f.Name != "requests":
		return ""
	case f.Value <= goal:
		return fmt.Sprintf("at most %g: reached", goal)
	default:
		return fmt.Sprintf("at most %g: MISSED", goal)
	}
}

// play counts the requests of a consumer from its first message to its last, or for a while.
func (s scene) play(ctx context.Context, service *sqstest.Service) (map[string]int, error) {
	spec := topology.SQSSpec{
		SQSIdentity:      topology.SQSIdentity{Topic: "bench-" + strings.ReplaceAll(s.name, "_", "-"), Region: service.Region(), Account: service.Account(), FIFO: s.fifo},
		SQSQueueSettings: topology.SQSQueueSettings{VisibilityTimeout: s.lease},
		Endpoint:         service.Endpoint(), AllowMessageLoss: true, Retry: topology.RetryPolicy{MaxRetries: 10, Delays: []time.Duration{time.Second}},
	}
	doc, err := spec.Manifest()
	if err != nil {
		return nil, err
	}
	manifest, err := redeliver.ParseManifest(doc.Encode())
	if err != nil {
		return nil, err
	}
	settings := service.Config()
	if err := s.provision(ctx, awssqs.NewFromConfig(settings), doc); err != nil {
		return nil, err
	}
	count := newCounter(doc.WorkQueue.Attributes.VisibilityTimeout())
	settings.HTTPClient = count
	done := make(chan struct{})
	var acked atomic.Int64
	c, err := sqs.Open(ctx, sqs.Config{AWS: &settings, Manifest: manifest, Handler: s.handle, Consumer: redeliver.Config{
		Workers: s.workers, Logger: slog.New(slog.DiscardHandler),
		OnEvent: func(e redeliver.Event) {
			if e.Kind == redeliver.EventAcked && int(acked.Add(1)) == s.messages {
				close(done)
			}
		},
	}})
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	if s.floors == nil { // opening is no part of it
		count.reset()
		time.AfterFunc(idleFor, func() { close(done) })
	}
	go func() { ended <- c.Run(ctx) }()
	select {
	case <-done:
	case <-ctx.Done():
	}
	if s.floors == nil {
		return count.read(), errors.Join(c.Close(), <-ended, ctx.Err())
	}
	err = errors.Join(c.Close(), <-ended, ctx.Err()) // which sends the last deletes
	return count.read(), err
}

// provision makes the queue and fills it.
func (s scene) provision(ctx context.Context, client *awssqs.Client, doc topology.Manifest) error {
	if _, err := client.CreateQueue(ctx, &awssqs.CreateQueueInput{QueueName: &doc.WorkQueue.Name, Attributes: doc.WorkQueue.Attributes}); err != nil {
		return err
	}
	const batch = 10
	for i := 0; i < s.messages; i += batch {
		entries := make([]types.SendMessageBatchRequestEntry, batch)
		for k := range entries {
			entries[k] = types.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(k)), MessageBody: aws.String(strconv.Itoa(i + k))}
			if s.fifo {
				entries[k].MessageGroupId, entries[k].MessageDeduplicationId = aws.String(strconv.Itoa((i/batch)%8)), aws.String(strconv.Itoa(i+k))
			}
		}
		if _, err := client.SendMessageBatch(ctx, &awssqs.SendMessageBatchInput{QueueUrl: &doc.WorkQueue.URL, Entries: entries}); err != nil {
			return err
		}
	}
	return nil
}
