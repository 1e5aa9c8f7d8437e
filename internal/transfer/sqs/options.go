package sqs

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/sqsapi"
)

// Queue is where a queue is.
type Queue struct{ Name, URL, ARN string }

// Options say what is moved where.
type Options struct {
	// Client makes the requests.
	Client *sqs.Client
	// Source is the queue that messages are taken from, and Target the one they go to.
	Source, Target Queue
	// FIFO says that the target is a FIFO queue.
	FIFO bool
	// Limit is how many messages are moved at most; 0 is as many as there are.
	Limit int
	// Filter, where it is set, says which messages are moved. The others stay.
	Filter func(*types.Message) bool
	// Without are the names of attributes that a copy does not have.
	Without []string
	// DryRun looks at the messages and sends none. Moved is then how many would be.
	DryRun bool
	// Rate is how many messages are moved in a second at most; 0 is no limit.
	Rate float64
	// Progress, where it is set, is told a few times in a second how far the run is. The run waits for it.
	Progress func(Report)
	// System are the system attributes that Filter looks at.
	System []types.MessageSystemAttributeName
}

// Native says whether the service's own move does what the options ask for.
// dead says that the source is the dead-letter queue of another.
func (o Options) Native(dead bool) bool {
	return dead && o.Limit == 0 && o.Filter == nil && !o.DryRun && (o.Rate == 0 || o.Rate >= 1 && o.Rate <= maxTaskRate && o.Rate == float64(int(o.Rate)))
}

// slowest is the lowest rate, a message a day: the pauses of lower ones have no end that a clock can tell.
const slowest = 1.0 / (24 * 60 * 60)

func (o Options) validate() error {
	switch {
	case math.IsNaN(o.Rate), o.Rate > 0 && o.Rate < slowest:
		return fmt.Errorf("rate %v: use a number of messages in a second, at least %g (one a day), or 0 for no limit", o.Rate, slowest)
	case o.Limit < 0, o.Rate < 0:
		return fmt.Errorf("limit %d, rate %v: they are not negative", o.Limit, o.Rate)
	case o.Source == o.Target:
		return errors.New("the messages are in that queue already")
	default:
		return nil
	}
}

// Report says what became of the messages. Each that a run by send looked at is
// counted once: Moved + Skipped + Failed + Doubtful.
type Report struct {
	// Found is how many messages the source had when the run began, by the service's approximate count; -1 where it does
	// not say.
	Found int
	// Moved, Skipped, Failed, Doubtful and Left are those of a redeliver.ReplayReport.
	Moved, Skipped, Failed, Doubtful, Left int
	// Failures are the reasons why messages failed, or are doubtful.
	Failures []Failure
}

// Failure is one reason why messages failed.
type Failure struct {
	Err       error
	MessageID string
	Count     int
	// Unknown: the target may have the copies all the same, and the messages are Doubtful. The others are Failed.
	Unknown bool
}

// fail counts a message that was not moved, as far as is known.
func (r *Report) fail(id string, err error) {
	unknown := sqsapi.Unanswered(err)
	if unknown {
		r.Doubtful++
	} else {
		r.Failed++
	}
	i := slices.IndexFunc(r.Failures, func(f Failure) bool { return f.Unknown == unknown && f.Err.Error() == err.Error() })
	if i < 0 {
		i = len(r.Failures)
		r.Failures = append(r.Failures, Failure{Err: err, MessageID: id, Unknown: unknown})
	}
	r.Failures[i].Count++
}

// progressEvery is how often progress is told.
const progressEvery = 250 * time.Millisecond
