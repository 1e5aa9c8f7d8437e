package redeliver_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// runner is a consumer as a group sees it: it runs until it is told to stop or
// to fail, and then returns result.
type runner struct {
	topic  string
	result error
	fail   chan struct{} // closed: it fails by itself

	closing, running, ended chan struct{}
	once                    sync.Once
}

func newRunner(topic string, result error) *runner {
	return &runner{
		topic: topic, result: result,
		fail: make(chan struct{}), closing: make(chan struct{}), running: make(chan struct{}), ended: make(chan struct{}),
	}
}

func (r *runner) Run(ctx context.Context) error {
	close(r.running)
	defer close(r.ended)
	select {
	case <-ctx.Done():
	case <-r.closing:
	case <-r.fail:
	}
	return r.result
}

func (r *runner) Close() error {
	r.once.Do(func() { close(r.closing) })
	select {
	case <-r.running:
		<-r.ended
	default: // it never ran
	}
	return r.result
}

func (r *runner) Health() redeliver.Health {
	return redeliver.Health{Status: redeliver.HealthOK, Topic: r.topic}
}

// start runs a group whose runners all run when it returns.
func start(ctx context.Context, g *redeliver.Group, runners ...*runner) <-chan error {
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx) }()
	for _, r := range runners {
		<-r.running
	}
	return done
}

func TestGroupEndsWithItsContext(t *testing.T) {
	t.Parallel()
	a, b := newRunner("a", nil), newRunner("b", nil)
	g := redeliver.NewGroup(a, b)
	ctx, cancel := context.WithCancel(t.Context())
	done := start(ctx, g, a, b)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

func TestGroupCloses(t *testing.T) {
	t.Parallel()
	drain := &redeliver.DrainError{Topic: "b", Stranded: []redeliver.Stranded{{MessageID: "m1"}}}
	a, b := newRunner("a", nil), newRunner("b", drain)
	g := redeliver.NewGroup(a, b)
	done := start(t.Context(), g, a, b)
	closed, ran := g.Close(), <-done
	for _, err := range []error{closed, ran, g.Close()} {
		var got *redeliver.DrainError
		if !errors.As(err, &got) || got != drain || strings.Count(err.Error(), `topic "b"`) != 1 {
			t.Error(err)
		}
	}
}

// A consumer that fails takes the others with it, and every error has its topic.
func TestGroupFailsTogether(t *testing.T) {
	t.Parallel()
	gaveUp := fmt.Errorf("gave up connecting: %w", errBoom)
	a, b, c := newRunner("a", &redeliver.DrainError{Topic: "a"}), newRunner("b", gaveUp), newRunner("c", nil)
	done := start(t.Context(), redeliver.NewGroup(a, b, c), a, b, c)
	close(b.fail)
	err := <-done
	var drain *redeliver.DrainError
	if !errors.Is(err, errBoom) || !errors.As(err, &drain) || drain.Topic != "a" || !strings.Contains(err.Error(), `topic "b": gave up connecting`) ||
		strings.Count(err.Error(), "topic") != 2 {
		t.Error(err)
	}
}

// One that is closed by itself leaves the others alone.
func TestGroupGoesOnWithoutOne(t *testing.T) {
	t.Parallel()
	a, b := newRunner("a", nil), newRunner("b", nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := start(ctx, redeliver.NewGroup(a, b), a, b)
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	select {
	case <-b.ended:
		t.Error("the other one ended too")
	default:
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestGroupOfGroups(t *testing.T) {
	t.Parallel()
	a, b := newRunner("a", errBoom), newRunner("b", nil)
	outer := redeliver.NewGroup(redeliver.NewGroup(a), b)
	done := start(t.Context(), outer, a, b)
	close(a.fail)
	if err := <-done; !errors.Is(err, errBoom) || err.Error() != `topic "a": boom` {
		t.Error(err)
	}
	if h := outer.Health(); h.Status != redeliver.HealthOK || len(h.Parts) != 2 || h.Parts[0].Parts[0].Topic != "a" {
		t.Errorf("%+v", h)
	}
}

func TestGroupThatNeverRan(t *testing.T) {
	t.Parallel()
	a := newRunner("a", nil)
	if err := redeliver.NewGroup(a).Close(); err != nil {
		t.Error(err)
	}
	<-a.closing
	empty := redeliver.NewGroup()
	if err := empty.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "NewGroup") {
		t.Error(err)
	}
	if err := empty.Close(); err != nil {
		t.Error(err)
	}
}
