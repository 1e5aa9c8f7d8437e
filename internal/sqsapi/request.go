package sqsapi

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

const (
	// BatchMax is how many messages a receive returns at most, and how many entries a batch has.
	BatchMax = 10
	// BytesMax is how large a message can be, and a batch of messages.
	BytesMax = 1 << 20
	// Timeout bounds a request, on top of the time for which a receive waits.
	Timeout = 10 * time.Second

	backoffFirst = 100 * time.Millisecond
	backoffMax   = 20 * time.Second
)

// Once has the SDK make a request once: its own retries would hide that the
// service is throttling, and would go on when a message's time is over. Only a
// request that was refused because this machine's clock is wrong, which was not
// carried out, is made again: the SDK signs it with the time that the service
// said.
func Once(o *sqs.Options) { o.Retryer = once{} }

type once struct{ aws.NopRetryer }

// MaxAttempts implements aws.Retryer.
func (once) MaxAttempts() int { return 2 }

// RetryDelay implements aws.Retryer.
func (once) RetryDelay(int, error) (time.Duration, error) { return 0, nil }

// IsErrorRetryable implements aws.Retryer. The SDK marks an error that it takes
// for the clock's, and has no name for the mark.
func (once) IsErrorRetryable(err error) bool {
	var marked interface{ RetryableError() bool }
	denied, _ := Denied(err)
	return (denied || BadCredentials(err)) && errors.As(err, &marked) && marked.RetryableError()
}

// Backoff are the pauses before a request is made again: they double up to 20
// seconds, and jitter takes up to half of each away.
type Backoff struct{ pause time.Duration }

// Next is the next pause.
func (b *Backoff) Next() time.Duration {
	b.pause = min(max(backoffFirst, 2*b.pause), backoffMax)
	return time.Duration(float64(b.pause) * (1 - rand.Float64()/2)) //nolint:gosec // no secret
}

// Reset begins with the shortest pause again.
func (b *Backoff) Reset() { b.pause = 0 }

// Sleep waits for d. It returns false when ctx ended first.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Seconds is a duration as the service takes it, rounded up.
func Seconds(d time.Duration) int32 {
	return int32((d + time.Second - 1) / time.Second) //nolint:gosec // at most 12 hours
}
