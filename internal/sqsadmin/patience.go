package sqsadmin

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// patience is how long an endpoint is tried that has never answered. All the tries that a throttled request has would take
// minutes for each queue of a plan, and a wrong address is no better after them.
const patience = 20 * time.Second

// patient is the SDK's retryer, which loses its patience with an endpoint that has never answered.
type patient struct {
	aws.Retryer
	answered *atomic.Bool

	mu    sync.Mutex
	first time.Time // when a request was not answered first
}

// IsErrorRetryable implements aws.Retryer.
func (p *patient) IsErrorRetryable(err error) bool {
	if !p.Retryer.IsErrorRetryable(err) {
		return false
	}
	var unanswered *smithyhttp.RequestSendError
	if !errors.As(err, &unanswered) || p.answered.Load() {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.first.IsZero() {
		p.first = time.Now()
	}
	return time.Since(p.first) < patience
}
