package sqs_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go/middleware"

	"github.com/redeliver/terraform-provider-redeliver/internal/sqstest/fake"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
	"github.com/redeliver/terraform-provider-redeliver/redeliver/sqs"
)

func slowly(s *topology.SQSSpec) { s.Retry.Delays = []time.Duration{10 * time.Minute} }

// TestCopiesThatAreNeverTaken: a copy that is refused for good, or for long, does
// not keep its message in the queue until the retention ends it.
func TestCopiesThatAreNeverTaken(t *testing.T) {
	t.Parallel()
	for name, wrong := range map[string]func(w *world){
		"entries refused": func(w *world) {
			w.fake.FailEntries("SendMessageBatch", func(string) *fake.Error {
				return &fake.Error{Shape: "InvalidMessageContents", Query: "InvalidMessageContents", Message: "Invalid characters found."}
			})
		},
		"denied": func(w *world) {
			w.fake.Fail("SendMessageBatch", -1, fake.AccessDenied("sqs:sendmessage", w.doc.DeadLetter.ARN))
		},
	} {
		t.Run(name, func(t *testing.T) {
			inFake(t, func(w *world) {
				book := newNotebook()
				l := w.consume(redeliver.Config{}, func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
					book.note(m)
					return redeliver.Reject(errBoom)
				})
				wrong(w)
				if _, err := w.client.SendMessage(w.t.Context(), &awssqs.SendMessageInput{QueueUrl: &w.doc.WorkQueue.URL, MessageBody: aws.String("x")}); err != nil {
					w.t.Fatal(err)
				}
				pass(time.Minute)
				if h := l.Health(); h.Status != redeliver.HealthDegraded {
					w.t.Errorf("%+v", h)
				}
				pass(12 * time.Hour)
				if s := l.Stats(); s.SetAsideFailed == 0 || s.DeadLettered != 1 || len(book.of("x")) != 1 ||
					len(w.fake.Messages("orders")) != 0 || len(w.fake.Messages("orders-dlq")) != 1 {
					w.t.Errorf("%+v, calls %v", s, book.all())
				}
				w.fake.Mend()
				l.mustStop()
			}, sending, slowly)
		})
	}
}

// TestPollersEndTogether: when several polls find nothing at a time, one stays.
func TestPollersEndTogether(t *testing.T) {
	inFake(t, func(w *world) {
		l := w.consume(redeliver.Config{Workers: 64, Prefetch: 200}, func(context.Context, *redeliver.Message) redeliver.Outcome { return redeliver.Ack() })
		for round := range 3 {
			w.publish(ids(200)...)
			pass(5 * time.Minute)
			if s := l.Stats(); int(s.Acked) != 200*(round+1) || s.SessionsLost != 0 {
				w.t.Fatalf("round %d: %+v", round, s)
			}
		}
		l.mustStop()
	})
}

// TestSlowHandlerStarvesNobody: messages are received while a handler is slow,
// although there is no room for a full batch.
func TestSlowHandlerStarvesNobody(t *testing.T) {
	t.Parallel()
	for _, prefetch := range []int{8, 10} {
		t.Run(fmt.Sprint(prefetch), func(t *testing.T) {
			inFake(t, func(w *world) {
				var quick atomic.Int32
				w.publish("slow")
				l := w.consume(redeliver.Config{Workers: 8, Prefetch: prefetch}, func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
					if string(m.Body) == "slow" {
						time.Sleep(10 * time.Minute)
					} else {
						quick.Add(1)
					}
					return redeliver.Ack()
				})
				pass(time.Minute)
				w.publish("a", "b")
				pass(30 * time.Second)
				if n := quick.Load(); n != 2 {
					w.t.Errorf("%d of 2 were handled", n)
				}
				pass(10 * time.Minute)
				l.mustStop()
			})
		})
	}
}

// TestFreshGroups: groups that wait for long leave room for others.
func TestFreshGroups(t *testing.T) {
	inFake(t, func(w *world) {
		book := newNotebook()
		for i := range 60 {
			w.publish(fmt.Sprintf("g%d/bad", i))
		}
		l := w.consume(redeliver.Config{}, func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
			if book.note(m); strings.HasSuffix(string(m.Body), "bad") && m.RetryCount == 0 {
				return redeliver.RetryAfter(time.Hour, errBoom)
			}
			return redeliver.Ack()
		})
		pass(time.Minute)
		w.publish("fresh/1")
		pass(time.Minute)
		if len(book.of("fresh/1")) != 1 {
			w.t.Errorf("it was not handled: %+v", l.Stats())
		}
		pass(2 * time.Hour)
		l.mustStop()
	}, fifo)
}

// TestBuriedForLong: the first message of a group that failed is not handled
// again, however long those behind it take.
func TestBuriedForLong(t *testing.T) {
	inFake(t, func(w *world) {
		book := newNotebook()
		w.publish("g/head", "g/next")
		l := w.consume(redeliver.Config{}, func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
			switch calls := book.note(m); {
			case string(m.Body) == "g/head":
				return redeliver.Reject(errBoom)
			case calls == 1:
				return redeliver.RetryAfter(2*time.Hour, errBoom)
			default:
				return redeliver.Ack()
			}
		})
		pass(5 * time.Hour)
		if got := book.all(); !slices.Equal(got, []string{"g/head", "g/next", "g/next"}) || len(w.fake.Messages("orders-dlq.fifo")) != 1 {
			w.t.Errorf("%q", got)
		}
		l.mustStop()
	}, fifo)
}

// TestNoRedrivePolicy: a queue that moves nothing is asked in vain with pauses,
// and that is said.
func TestNoRedrivePolicy(t *testing.T) {
	inFake(t, func(w *world) {
		if _, err := w.client.SetQueueAttributes(w.t.Context(), &awssqs.SetQueueAttributesInput{QueueUrl: &w.doc.WorkQueue.URL, Attributes: map[string]string{"RedrivePolicy": ""}}); err != nil {
			w.t.Fatal(err)
		}
		book := newNotebook()
		w.publish("x")
		l := w.consume(redeliver.Config{}, func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
			book.note(m)
			return redeliver.Reject(errBoom)
		})
		pass(time.Hour)
		h := l.Health()
		if n := w.fake.Requests()["ReceiveMessage"]; n > 250 || len(book.all()) != 1 || h.Status != redeliver.HealthDegraded || !strings.Contains(strings.Join(h.Reasons, " "), "no redrive policy") {
			w.t.Errorf("%d receives, %d calls, %+v", n, len(book.all()), h)
		}
		l.mustStop()
	})
}

// TestDeletesFailForLong: a message whose deletion takes longer than its lease
// is kept, so that nobody handles it again.
func TestDeletesFailForLong(t *testing.T) {
	inFake(t, func(w *world) {
		book := newNotebook()
		w.publish("g/0", "g/1", "g/2")
		l := w.consume(redeliver.Config{}, func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
			book.note(m)
			return redeliver.Ack()
		})
		w.fake.Fail("DeleteMessageBatch", -1, fake.Throttled())
		pass(5 * time.Minute)
		w.fake.Mend()
		pass(5 * time.Minute)
		if got := book.all(); !slices.Equal(got, []string{"g/0", "g/1", "g/2"}) || len(w.fake.Messages("orders.fifo")) != 0 {
			w.t.Errorf("%q, %+v", got, l.Stats())
		}
		l.mustStop()
	}, fifo)
}

// TestRenewalHangs: a request to extend a lease that hangs leaves time for the
// next.
func TestRenewalHangs(t *testing.T) {
	t.Parallel()
	for _, visibility := range []time.Duration{10 * time.Second, 20 * time.Second, 30 * time.Second} {
		t.Run(visibility.String(), func(t *testing.T) {
			inFake(t, func(w *world) {
				w.publish("x")
				var changes, calls atomic.Int32
				w.client = w.fake.Client(func(o *awssqs.Options) {
					o.APIOptions = append(o.APIOptions, func(s *middleware.Stack) error {
						return s.Initialize.Add(middleware.InitializeMiddlewareFunc("hang",
							func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (out middleware.InitializeOutput, m middleware.Metadata, err error) {
								if _, ok := in.Parameters.(*awssqs.ChangeMessageVisibilityBatchInput); ok && changes.Add(1) == 2 {
									<-ctx.Done()
									return out, m, ctx.Err()
								}
								return next.HandleInitialize(ctx, in)
							}), middleware.Before)
					})
				})
				l := w.consume(redeliver.Config{}, func(ctx context.Context, _ *redeliver.Message) redeliver.Outcome {
					calls.Add(1)
					select {
					case <-time.After(2 * time.Minute):
					case <-ctx.Done():
					}
					return redeliver.Ack()
				})
				pass(10 * time.Minute)
				if s := l.Stats(); calls.Load() != 1 || s.LeasesLost != 0 || s.Acked != 1 {
					w.t.Errorf("%d calls, %+v", calls.Load(), s)
				}
				l.mustStop()
			}, func(s *topology.SQSSpec) { s.VisibilityTimeout = visibility })
		})
	}
}

// TestContradictions: a configuration that says two things is refused.
func TestContradictions(t *testing.T) {
	inFake(t, func(w *world) {
		handler := redeliver.HandlerFunc(func(context.Context, *redeliver.Message) redeliver.Outcome { return redeliver.Ack() })
		both := w.config(handler, redeliver.Config{})
		both.Endpoint = "http://127.0.0.1:1"
		elsewhere := w.config(handler, redeliver.Config{})
		elsewhere.Client, elsewhere.Region = nil, "eu-north-1"
		for want, cfg := range map[string]sqs.Config{"Client is set": both, "eu-north-1": elsewhere} {
			if _, err := sqs.Open(w.t.Context(), cfg); err == nil || !strings.Contains(err.Error(), want) {
				w.t.Errorf("%v", err)
			}
		}
	})
}

// TestClockIsWrong: a machine whose clock is an hour off can open a consumer: the service says what time it is.
func TestClockIsWrong(t *testing.T) {
	inFake(t, func(w *world) {
		w.between = func(r *http.Request, next send) (*http.Response, error) {
			now := time.Now().Add(time.Hour).UTC()
			signed, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
			if err != nil {
				return nil, err
			}
			answer, err := next(r)
			if now.Sub(signed).Abs() > 15*time.Minute {
				answer, err = says(http.StatusForbidden, `{"__type":"com.amazon.coral.service#InvalidSignatureException","message":"Signature expired"}`)
			}
			if err == nil {
				answer.Header.Set("Date", now.Format(http.TimeFormat))
			}
			return answer, err
		}
		book := newNotebook()
		l := w.consume(redeliver.Config{}, func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
			book.note(m)
			return redeliver.Ack()
		})
		w.publish("x")
		pass(time.Second)
		if len(book.of("x")) != 1 {
			w.t.Errorf("%v", book.all())
		}
		l.mustStop()
	})
}

// TestHastyAnswers: what answers every poll at once with nothing is not asked without end, and messages are received when
// it does otherwise.
func TestHastyAnswers(t *testing.T) {
	inFake(t, func(w *world) {
		var hasty atomic.Bool
		var polls atomic.Int64
		w.between = func(r *http.Request, next send) (*http.Response, error) {
			if hasty.Load() && asks(r, "ReceiveMessage") {
				polls.Add(1)
				return says(http.StatusOK, "")
			}
			return next(r)
		}
		book := newNotebook()
		l := w.consume(redeliver.Config{}, func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
			book.note(m)
			return redeliver.Ack()
		})
		hasty.Store(true)
		for range 600 { // a service without long polls: time passes with its answers only
			pass(time.Second)
			if n := polls.Load(); n > 600 {
				w.t.Fatalf("%d polls within %v", n, l.Stats())
			}
		}
		if n := polls.Load(); n < 10 || n > 100 {
			w.t.Errorf("%d polls in ten minutes", n)
		}
		hasty.Store(false)
		w.publish("x")
		pass(time.Minute)
		if len(book.of("x")) != 1 {
			w.t.Errorf("%v", book.all())
		}
		l.mustStop()
	})
}

// TestCopiesInSmallBatches: in a region where a batch has fewer bytes, copies go in smaller ones.
func TestCopiesInSmallBatches(t *testing.T) {
	inFake(t, func(w *world) {
		w.between = smallBatches
		for _, body := range ids(10) {
			w.publish(body)
		}
		l := w.consume(redeliver.Config{Workers: 10}, func(context.Context, *redeliver.Message) redeliver.Outcome { return redeliver.Reject(errBoom) })
		pass(5 * time.Second)
		if s := l.Stats(); s.DeadLettered != 10 || s.SetAsideFailed != 0 || len(w.in("orders-dlq")) != 10 {
			w.t.Errorf("%+v, %q", s, w.in("orders-dlq"))
		}
		l.mustStop()
	}, sending)
}
