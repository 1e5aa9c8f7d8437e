package consumer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// Options are what a consumer is made of.
type Options struct {
	// Manifest is the topic's manifest, decoded. It is not modified.
	Manifest topology.Manifest
	// Queue is the queue to consume: one of the manifest's work queues, or with Dead its dead-letter or parked queue.
	Queue topology.ManifestQueue
	// Dead says that Queue is a dead-letter or parked queue.
	Dead bool
	// Handler handles the messages.
	Handler redeliver.Handler
	// Config says how; it is validated and filled in.
	Config redeliver.Config
	// Connect makes the transport, and a publisher where targets is not empty.
	Connect func(m topology.Manifest, queue topology.ManifestQueue, targets []*topology.ManifestTarget) (Transport, Publisher, error)
	// Clock is nil for the machine's.
	Clock Clock
	// Random returns numbers in [0, 1) for jitter. Nil is math/rand.
	Random func() float64
	// Moving is told of every change to the number of things that go on in the engine by themselves. A broker in memory
	// lets its clock stand still until that is zero. See motion. Nil: nobody asks.
	Moving func(change int)
}

// Consumer consumes one topic. Make one with [New], then [Consumer.Bind], then
// [Consumer.Run]; [Consumer.Close] ends it at any time.
type Consumer struct {
	manifest  topology.Manifest
	queue     topology.ManifestQueue
	policy    Policy
	cfg       redeliver.Config
	handler   redeliver.Handler
	transport Transport
	publisher Publisher       // nil where the manifest publishes nothing
	probe     redeliver.Probe // nil without telemetry
	clock     Clock
	random    func() float64
	motion    motion
	log       *slog.Logger
	timedOut  *redeliver.TimeoutError

	counters counters
	health   *vitals
	ready    *readyQueue
	holds    *holds
	lanes    *lanes // nil where the topic is not sequenced

	// workers are the goroutines that call the handler. Each has a slot, and the first slot is the receiver's.
	workers sync.WaitGroup
	slots   []slot
	free    freeTasks
	// publishing counts the copies that wait for their confirm; unconfirmed names them.
	publishing  sync.WaitGroup
	unconfirmed strandedSet

	// handlerCtx is what handlers get; its values are those of Run's context.
	handlerCtx     context.Context
	cancelHandlers context.CancelCauseFunc

	// current is the session that is served, nil while there is none; sessions counts them. Only Bind and then the
	// goroutine of Run (or of a Close without Run) touch them.
	current  *session
	sessions int
	retired  sync.WaitGroup // sessions that are being closed

	closing  chan struct{} // Close was called
	draining chan struct{} // a shutdown has begun

	mu     sync.Mutex
	state  state
	done   chan struct{} // closed when the consumer has ended; result is set then
	result error
}

// state is how far a consumer's life has got.
type state uint8

const (
	stateNew state = iota
	stateBound
	stateRunning
	stateClosed
)

// New makes a consumer. It connects to nothing.
func New(o Options) (*Consumer, error) {
	manifest := o.Manifest
	if manifest.Topic == "" {
		return nil, redeliver.ErrNoManifest
	}
	if o.Handler == nil {
		return nil, errors.New("there is no handler: set one, such as redeliver.HandlerFunc or redeliver.JSON")
	}
	if err := o.Config.Validate(); err != nil {
		return nil, err
	}
	policy := NewPolicy(manifest, o.Config)
	if o.Dead {
		policy = DeadPolicy(manifest)
	}
	if err := checkSequence(manifest.Topic, policy, o.Config.Sequence); err != nil {
		return nil, err
	}
	if o.Queue.Name == "" {
		o.Queue = manifest.WorkQueue
	}
	c := &Consumer{
		manifest: manifest, queue: o.Queue, policy: policy, cfg: effectiveConfig(o.Config, policy), handler: o.Handler, clock: o.Clock, random: o.Random, motion: o.Moving,
		health: newVitals(), ready: newReadyQueue(),
		closing: make(chan struct{}), draining: make(chan struct{}), done: make(chan struct{}),
	}
	c.log = c.cfg.Logger.With("topic", manifest.Topic, "queue", c.queue.Name)
	if manifest.VHost != "" {
		c.log = c.log.With("vhost", manifest.VHost)
	}
	c.timedOut = &redeliver.TimeoutError{Timeout: c.cfg.HandlerTimeout}
	c.slots = make([]slot, 1+c.cfg.Workers)
	if c.clock == nil {
		c.clock = SystemClock{}
	}
	if c.random == nil {
		c.random = rand.Float64
	}
	if policy.Sequenced {
		c.lanes = newLanes(sequenceOf(policy, o.Config.Sequence))
	}
	c.holds = newHolds(c.clock, c.cfg.MaxHeld)
	c.ready.motion, c.holds.motion = c.motion, c.motion
	var err error
	if c.transport, c.publisher, err = o.Connect(manifest, c.queue, policy.Targets()); err != nil {
		return nil, err
	}
	return c, nil
}

// receiveBatch is how many messages come at a time from a broker that is asked
// for them.
const receiveBatch = 10

// effectiveConfig fills in the defaults. Where the broker delays retries,
// nothing needs to be prefetched for a message that waits, and a lost
// connection delays every prefetched message.
func effectiveConfig(cfg redeliver.Config, p Policy) redeliver.Config {
	if p.waitsThere() && cfg.Prefetch == 0 && cfg.MaxHeld == 0 {
		// Nothing is held for long, and what waits for a worker costs requests: two full receives are enough.
		cfg.Workers = cmp.Or(cfg.Workers, redeliver.DefaultWorkers)
		cfg.Prefetch = cfg.Workers + 2*receiveBatch
	}
	cfg = cfg.WithDefaults()
	if p.Strategy == topology.BrokerDelayed {
		cfg.Prefetch, cfg.MaxHeld = cfg.Workers, cfg.Workers
	}
	return cfg
}

// checkSequence refuses a sequenced topic whose keys are not known, and keys
// that would have no effect.
func checkSequence(topic string, p Policy, s *redeliver.Sequence) error {
	switch {
	case p.Sequenced && p.BrokerWaits && s != nil && s.Key != nil:
		return fmt.Errorf("topic %q: its messages are in order by their message groups, which SQS knows; leave Config.Sequence.Key out", topic)
	case p.Sequenced && !p.BrokerWaits && (s == nil || s.Key == nil):
		return fmt.Errorf("topic %q is sequenced: say in Config.Sequence which messages belong together, "+
			"such as &redeliver.Sequence{Key: redeliver.KeyFromRoutingKey}", topic)
	case p.Sequenced && s != nil && s.OnFailure != "" && s.OnFailure != redeliver.SkipFailed && s.OnFailure != redeliver.FailAll:
		return fmt.Errorf("topic %q: Config.Sequence.OnFailure is %q; use redeliver.SkipFailed or redeliver.FailAll", topic, s.OnFailure)
	case !p.Sequenced && s != nil && !p.NeverGivesUp:
		return fmt.Errorf("topic %q is not sequenced, so its messages are in no order that Config.Sequence could keep; "+
			"set sequenced on the topic resource, or leave Config.Sequence out", topic)
	default:
		return nil
	}
}

// sequenceOf is what the configuration says about order, with the key of a topic
// whose broker knows it: the message group.
func sequenceOf(p Policy, s *redeliver.Sequence) *redeliver.Sequence {
	if !p.BrokerWaits {
		return s
	}
	grouped := redeliver.Sequence{Key: redeliver.KeyFromRoutingKey}
	if s != nil {
		grouped.OnFailure = s.OnFailure
	}
	return &grouped
}

// Bind checks that messages can be published where the manifest needs it, and
// subscribes to the work queue. From then on the broker may send up to Prefetch
// messages; none is handed to the handler before Run. After an error the
// consumer is of no more use and holds nothing.
func (c *Consumer) Bind(ctx context.Context) error {
	s, err := c.subscribe(ctx)
	if err != nil {
		if c.publisher != nil {
			ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
			defer cancel()
			if closeErr := c.publisher.Close(ctx); closeErr != nil {
				c.log.Debug("closing the publisher", "error", closeErr)
			}
		}
		return err
	}
	if c.cfg.Telemetry != nil {
		c.probe = c.cfg.Telemetry.Watch(redeliver.Watched{
			System: c.manifest.Broker, Topic: c.manifest.Topic, Queue: c.queue.Name, VHost: c.manifest.VHost,
			Stats: c.Stats, Health: c.Health,
		})
	}
	c.motion.add(1)
	c.start(s)
	c.mu.Lock()
	c.state = stateBound
	c.mu.Unlock()
	return nil
}

func (c *Consumer) subscribe(ctx context.Context) (Session, error) {
	if targets := c.policy.Targets(); len(targets) > 0 {
		if err := c.publisher.Check(ctx, targets); err != nil {
			return nil, err
		}
	}
	return c.transport.Subscribe(ctx, c.cfg.Prefetch)
}

var (
	errNotBound = errors.New("the consumer was not opened")
	errRunTwice = errors.New("Run was called before: open another consumer")
	errClosed   = errors.New("the consumer is closed: open another one")
)

// Run handles messages until ctx is done, Close is called, or connecting has
// failed too often. Then it shuts down within Config.DrainTimeout. It returns a
// *redeliver.DrainError where messages were left behind, and nil after a clean
// shutdown.
func (c *Consumer) Run(ctx context.Context) error {
	if err := c.enter(stateRunning); err != nil {
		return err
	}
	c.health.enter("")
	c.handlerCtx, c.cancelHandlers = context.WithCancelCause(context.WithoutCancel(ctx))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stopWatching := c.whenClosing(cancel)
	defer stopWatching()

	c.workers.Add(c.cfg.Workers)
	c.motion.add(c.cfg.Workers)
	for i := range c.cfg.Workers {
		go c.work(&c.slots[1+i])
	}
	stopHolds, holdsStopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(holdsStopped)
		c.holds.run(stopHolds, c.finish)
	}()
	c.motion.add(-1)
	err := c.serve(ctx)
	if drainErr := c.drain(stopHolds, holdsStopped); err == nil {
		err = drainErr
	} else if drainErr != nil {
		err = errors.Join(err, drainErr)
	}
	c.leave(err)
	return err
}

// Close shuts the consumer down as the end of Run's context does, waits for
// it, and returns what Run returns. It may be called at any time and more than
// once.
func (c *Consumer) Close() error {
	c.mu.Lock()
	select {
	case <-c.closing:
	default:
		close(c.closing)
	}
	neverRan := c.state == stateNew || c.state == stateBound
	if neverRan {
		c.state = stateClosed
	}
	c.mu.Unlock()
	if neverRan {
		c.handlerCtx, c.cancelHandlers = context.WithCancelCause(context.Background())
		holdsStopped := make(chan struct{})
		close(holdsStopped)
		c.leave(c.drain(make(chan struct{}), holdsStopped))
	}
	<-c.done
	return c.result
}

// enter moves to a state that follows on stateBound.
func (c *Consumer) enter(next state) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.state {
	case stateBound:
		c.state = next
		return nil
	case stateNew:
		return errNotBound
	case stateRunning:
		return errRunTwice
	default:
		return errClosed
	}
}

// leave ends the consumer's life.
func (c *Consumer) leave(result error) {
	c.mu.Lock()
	c.state, c.result = stateClosed, result
	c.mu.Unlock()
	c.health.enter(phaseClosed)
	if c.probe != nil {
		c.probe.Close()
	}
	close(c.done)
}

// ResetSequence lets the messages of a key be handled again after one of them
// failed for good under redeliver.FailAll. It returns false when none had.
func (c *Consumer) ResetSequence(key string) bool { return c.lanes != nil && c.lanes.reset(key) }

// whenClosing calls do when Close is called. The returned function stops
// waiting for that.
func (c *Consumer) whenClosing(do func()) (stop func()) {
	quit, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case <-c.closing:
			do()
		case <-quit:
		}
	}()
	return func() { close(quit); <-stopped }
}
