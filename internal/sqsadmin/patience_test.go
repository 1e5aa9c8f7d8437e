package sqsadmin

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// TestPatience: an endpoint that has never answered is tried for a while, and one that has as often as it is configured.
func TestPatience(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, err := New(t.Context(), Config{Region: "eu-west-1", Endpoint: "http://127.0.0.1:1", AccessKey: "key", SecretKey: "secret"})
		if err != nil {
			t.Fatal(err)
		}
		p := c.sqs.Options().Retryer
		if n := p.MaxAttempts(); n != DefaultMaxRetries+1 {
			t.Errorf("%d attempts", n)
		}
		none := &smithyhttp.RequestSendError{Err: errors.New("connection refused")}
		try := func(after time.Duration, want bool) {
			t.Helper()
			time.Sleep(after)
			if got := p.IsErrorRetryable(none); got != want {
				t.Errorf("retried: %v, want %v", got, want)
			}
		}
		try(0, true)
		try(patience-time.Second, true)
		try(time.Second, false)
		if p.IsErrorRetryable(errors.New("whatever the SDK does not retry")) {
			t.Error("retried")
		}
		c.answered.Store(true)
		try(time.Hour, true)
	})
}

// TestAnswered: what answers, even with an error, is given the time that it needs.
func TestAnswered(t *testing.T) {
	t.Parallel()
	s := newService(t, map[string][]answer{"GetQueueAttributes": {{code: "AccessDenied"}}})
	c := s.client(&lines{})
	_, _ = c.Attributes(t.Context(), s.orders())
	if !c.answered.Load() {
		t.Error("the service has answered")
	}
	s = newService(t, nil)
	s.Close()
	c = s.client(&lines{})
	_, _ = c.Attributes(t.Context(), s.orders())
	if c.answered.Load() {
		t.Error("nothing has answered")
	}
}

// TestNobodySaid: an answer with an error that has no code is not the service's.
func TestNobodySaid(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusForbidden, http.StatusNotFound, http.StatusBadGateway} {
		balancer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		t.Cleanup(balancer.Close)
		s := newService(t, nil)
		s.URL = balancer.URL
		_, err := s.client(&lines{}).Attributes(t.Context(), s.orders())
		mentions(t, err, "is not one of SQS", "no proxy in between")
	}
}

// TestWhoSaidIt: an error of the credentials' own service is not called one of SQS.
func TestWhoSaidIt(t *testing.T) {
	t.Parallel()
	forbidden := &smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: &http.Response{StatusCode: http.StatusForbidden}}, Err: errors.New("forbidden")}
	err := &smithy.OperationError{ServiceID: "SQS", OperationName: "GetQueueAttributes", Err: &smithy.OperationError{ServiceID: "ec2imds", OperationName: "GetMetadata", Err: forbidden}}
	if got := reason(err); got != "the answer with status 403 is not one of ec2imds" {
		t.Error(got)
	}
}

// TestCreateNotAnswered: a queue that was made although nobody said so belongs to who made it, also when the apply is
// interrupted in that moment.
func TestCreateNotAnswered(t *testing.T) {
	t.Parallel()
	for name, there := range map[string]bool{"made": true, "not made": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reads := missing()
			if there {
				reads = attributes(topology.AttrVisibilityTimeout, "60")
			}
			s := newService(t, map[string][]answer{"GetQueueAttributes": {reads}})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			serve := s.Config.Handler
			s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("X-Amz-Target") == "AmazonSQS.CreateQueue" {
					cancel()
					panic(http.ErrAbortHandler)
				}
				serve.ServeHTTP(w, r)
			})
			made, err := s.client(&lines{}).Create(ctx, sixty(s))
			if made != there || err == nil {
				t.Errorf("made: %v, %v", made, err)
			}
		})
	}
}

// TestMissing: a queue that could be made and then not be read is refused before.
func TestMissing(t *testing.T) {
	t.Parallel()
	s := newService(t, map[string][]answer{"GetQueueAttributes": {missing()}, "ListQueueTags": {{code: "AccessDenied"}, missing()}})
	c := s.client(&lines{})
	_, _, err := c.Missing(t.Context(), s.orders())
	mentions(t, err, "sqs:ListQueueTags")
	if gone, _, err := c.Missing(t.Context(), s.orders()); err != nil || !gone {
		t.Errorf("%v, %v", gone, err)
	}
}
