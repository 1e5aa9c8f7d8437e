package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/sqstest"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
	"github.com/redeliver/terraform-provider-redeliver/redeliver/sqs"
)

// order is what the demo's messages say.
type order struct {
	Wish string `json:"wish"`
}

// story is a message of the demo and how it is expected to end.
type story struct {
	name, body, ends string
}

var stories = []story{
	{"ok", `{"wish":"ack"}`, "handled at once"},
	{"flaky", `{"wish":"fail twice"}`, "fails twice, waits tiers 0 and 1, then succeeds"},
	{"hopeless", `{"wish":"fail"}`, "fails always: three retries, then the DLQ"},
	{"early", `{"wish":"defer once"}`, "is deferred once, which counts here, then succeeds"},
	{"refused", `{"wish":"reject"}`, "is rejected: the DLQ at once"},
	{"unreadable", `not JSON`, "does not decode: the DLQ, before the handler sees it"},
}

// handle decides by what the order wishes.
func handle(_ context.Context, o order, msg *redeliver.Message) redeliver.Outcome {
	switch o.Wish {
	case "fail twice":
		if msg.RetryCount < 2 {
			return redeliver.Retry(errors.New("the payment service is away"))
		}
	case "fail":
		return redeliver.Retry(errors.New("the payment service is gone"))
	case "defer once":
		if msg.RetryCount == 0 {
			return redeliver.Defer()
		}
	case "reject":
		return redeliver.Reject(errors.New("the article does not exist"))
	}
	return redeliver.Ack()
}

// consume sends the stories, lets a consumer live on them until each has ended, and counts where they are.
func consume(ctx context.Context, service *sqstest.Service, manifest redeliver.Manifest) error {
	settings := service.Config()
	client := awssqs.NewFromConfig(settings)
	names, err := send(ctx, client, manifest)
	if err != nil {
		return err
	}
	start := time.Now()
	ended := make(chan struct{}, len(stories))
	consumer, err := sqs.Open(ctx, sqs.Config{
		AWS: &settings, Manifest: manifest, Handler: redeliver.JSON(handle),
		Consumer: redeliver.Config{
			Logger: slog.New(slog.DiscardHandler), // the events below are the demo's own log
			OnEvent: func(e redeliver.Event) {
				if e.Message == nil {
					return
				}
				tell(start, names[e.Message.ID], e)
				switch e.Kind {
				case redeliver.EventAcked, redeliver.EventDeadLettered:
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
		if err := await(ctx, ended, done); err != nil {
			return err
		}
	}
	// SQS moves a message on the receive after the last, so it takes the consumer to bring it to the dead-letter queue.
	if err := count(ctx, client, manifest, 3); err != nil {
		return err
	}
	stop()
	return <-done
}

func await(ctx context.Context, ended <-chan struct{}, done <-chan error) error {
	select {
	case <-ended:
		return nil
	case err := <-done:
		return errors.Join(errors.New("the consumer ended early"), err, ctx.Err())
	case <-time.After(time.Minute):
		return errors.New("after a minute some messages have not ended")
	}
}

// send sends the stories and returns their names by the ids that SQS gave them.
func send(ctx context.Context, client *awssqs.Client, manifest redeliver.Manifest) (map[string]string, error) {
	names := make(map[string]string)
	for _, s := range stories {
		fmt.Printf("send %-11s %-24s %s\n", s.name, s.body, s.ends)
		out, err := client.SendMessage(ctx, &awssqs.SendMessageInput{
			QueueUrl: aws.String(manifest.Contract().WorkQueue.URL), MessageBody: aws.String(s.body),
			MessageAttributes: map[string]types.MessageAttributeValue{"name": {DataType: aws.String("String"), StringValue: aws.String(s.name)}},
		})
		if err != nil {
			return nil, err
		}
		names[*out.MessageId] = s.name
	}
	fmt.Println()
	return names, nil
}

// tell prints what happened to a message.
func tell(start time.Time, name string, e redeliver.Event) {
	text := string(e.Kind)
	if e.Delay > 0 {
		text += " in " + e.Delay.String()
	}
	if e.Err != nil {
		text += " (" + e.Err.Error() + ")"
	}
	fmt.Printf("%7.3fs  %-11s attempt %d  %s\n", time.Since(start).Seconds(), name, e.Message.Attempt(), text)
}

// count asks where the messages are, until they are where they belong.
func count(ctx context.Context, client *awssqs.Client, manifest redeliver.Manifest, dead int) error {
	fmt.Println()
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	contract := manifest.Contract()
	for _, want := range []struct {
		name, url string
		messages  int
	}{{contract.WorkQueue.Name, contract.WorkQueue.URL, 0}, {contract.DeadLetter.Name, contract.DeadLetter.URL, dead}} {
		for {
			out, err := client.GetQueueAttributes(ctx, &awssqs.GetQueueAttributesInput{
				QueueUrl: &want.url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll},
			})
			if err != nil {
				return err
			}
			messages := 0
			for _, name := range []string{"ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"} {
				var n int
				_, _ = fmt.Sscan(out.Attributes[name], &n)
				messages += n
			}
			if messages == want.messages {
				fmt.Printf("%-14s %d messages\n", want.name, messages)
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("queue %s holds %d messages and %d were expected", want.name, messages, want.messages)
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	return nil
}

// handleDead shows the dead letters and deletes them.
func handleDead(ctx context.Context, service *sqstest.Service, manifest redeliver.Manifest) error {
	settings := service.Config()
	seen := make(chan string)
	consumer, err := sqs.HandleDead(ctx, sqs.Config{AWS: &settings, Manifest: manifest, Consumer: redeliver.Config{
		Workers: 1, Logger: slog.New(slog.DiscardHandler),
	}}, func(ctx context.Context, m *redeliver.DeadMessage) error {
		select {
		case seen <- fmt.Sprintf("%-11s %-24s from queue %s", m.Headers["name"], m.Body, m.OriginalQueue):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- consumer.Run(running) }()
	for range 3 {
		select {
		case text := <-seen:
			fmt.Println(text)
		case err := <-done:
			return errors.Join(errors.New("the consumer of dead letters ended early"), err, ctx.Err())
		case <-time.After(time.Minute):
			return errors.New("after a minute some dead letters have not come")
		}
	}
	stop()
	return <-done
}
