package redeliver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
)

// Runner is what runs until it is told to stop: the consumer of a topic, or a
// [Group] of them.
type Runner interface {
	// Run hands out messages until ctx is done or Close is called, and shuts down. It is called once.
	Run(ctx context.Context) error
	// Close shuts down, waits for that, and returns what Run returns. It may be called at any time and more than once.
	Close() error
	// Health says how it is.
	Health() Health
}

// Group runs several consumers as one: they share one shutdown, and where one
// gives up the others do not stay behind without it. It is a [Runner] itself.
type Group struct {
	runners []Runner
}

var _ Runner = (*Group)(nil)

// errEmptyGroup is what a group says that would otherwise run nothing for ever.
var errEmptyGroup = errors.New("running a group: there is no consumer in it; open them and pass them to redeliver.NewGroup")

// NewGroup makes a group of consumers that were opened and do not run yet.
func NewGroup(runners ...Runner) *Group {
	return &Group{runners: append([]Runner(nil), runners...)}
}

// Run runs all consumers until ctx is done, [Group.Close] is called, or one of
// them ends with an error; then it shuts down all of them, at the same time, each
// within its own Config.DrainTimeout. A consumer that was closed by itself ends
// without the others.
//
// It returns when all have ended: nil, or their errors, joined, each with its
// topic. errors.As finds a *[DrainError] or a *[BindError] among them.
func (g *Group) Run(ctx context.Context) error {
	if len(g.runners) == 0 {
		return errEmptyGroup
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return g.each(func(r Runner) error {
		err := r.Run(ctx)
		if err != nil {
			cancel()
		}
		return err
	})
}

// Close shuts all consumers down, at the same time, waits for that, and returns
// their errors like Run. It may be called at any time and more than once: also to
// give up consumers that were opened and are not to run, because another one
// could not be opened.
func (g *Group) Close() error {
	return g.each(Runner.Close)
}

// Health is that of all consumers together: see [JoinHealth].
func (g *Group) Health() Health {
	parts := make([]Health, len(g.runners))
	for i, r := range g.runners {
		parts[i] = r.Health()
	}
	return JoinHealth("", parts...)
}

// each calls do for all runners at the same time and joins their errors, in the
// order of the runners.
func (g *Group) each(do func(Runner) error) error {
	errs := make([]error, len(g.runners))
	var wg sync.WaitGroup
	for i, r := range g.runners {
		wg.Go(func() { errs[i] = ofTopic(r.Health().Topic, do(r)) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// ofTopic adds the topic to an error that does not begin with it, as most do.
func ofTopic(topic string, err error) error {
	if err == nil || topic == "" || strings.HasPrefix(err.Error(), fmt.Sprintf("topic %q", topic)) {
		return err
	}
	return fmt.Errorf("topic %q: %w", topic, err)
}
