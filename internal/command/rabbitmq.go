package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/amqp"
	"github.com/redeliver/terraform-provider-redeliver/internal/consumer"
	transport "github.com/redeliver/terraform-provider-redeliver/internal/consumer/rabbitmq"
	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/internal/transfer"
	"github.com/redeliver/terraform-provider-redeliver/internal/verify"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// rabbitMQ is the backend of RabbitMQ: the management API says how queues are, and messages are looked at and moved over
// AMQP. Each is connected to when a command needs it.
type rabbitMQ struct {
	cfg     rabbitmqadmin.Config
	amqpURL string
	client  *rabbitmqadmin.Client // nil until it is needed
}

var _ backend = (*rabbitMQ)(nil)

func (a *app) rabbitMQ(ctx context.Context) (*rabbitMQ, error) {
	if a.broker == nil {
		cfg, amqpURL, err := a.config(ctx)
		if err != nil {
			return nil, err
		}
		a.broker = &rabbitMQ{cfg: cfg, amqpURL: amqpURL}
	}
	return a.broker, nil
}

func (r *rabbitMQ) close() {
	if r.client != nil {
		r.client.Close()
	}
}

// admin is the client of the management API. A broker that does not answer, or does not know the user, is said here and
// not of every object.
func (r *rabbitMQ) admin(ctx context.Context) (*rabbitmqadmin.Client, error) {
	if r.client != nil {
		return r.client, nil
	}
	cfg := r.cfg
	cfg.AMQPEndpoints = nil // nothing is deleted here
	cfg.External = false
	switch {
	case len(cfg.Endpoints) == 0:
		return nil, fmt.Errorf("no address of RabbitMQ's management API is known: set --management-url or %s, such as http://localhost:15672", rabbitmqadmin.EnvName("endpoints"))
	case cfg.Username == "" && cfg.Token == nil && cfg.Headers == nil && !r.cfg.External:
		return nil, fmt.Errorf("no user is named: set --username, %s, or a token", rabbitmqadmin.EnvName("username"))
	}
	client, err := rabbitmqadmin.New(cfg)
	if err != nil {
		return nil, err
	}
	if _, err := client.Ping(ctx); err != nil {
		client.Close()
		return nil, err
	}
	r.client = client
	return client, nil
}

func (r *rabbitMQ) dial(vhost string) (transfer.Dial, error) {
	broker, err := amqpBroker(r.cfg, r.amqpURL, vhost)
	if err != nil {
		return nil, err
	}
	return broker.Dial, nil
}

func (r *rabbitMQ) Verify(ctx context.Context, m topology.Manifest) (verify.Report, error) {
	client, err := r.admin(ctx)
	if err != nil {
		return verify.Report{}, err
	}
	return verify.Manifest(ctx, client.View(), m)
}

func (r *rabbitMQ) Snapshot(ctx context.Context, m topology.Manifest) (snapshot, error) {
	client, err := r.admin(ctx)
	if err != nil {
		return snapshot{}, err
	}
	s := snapshot{Queues: queuesOf(m)}
	for i := range s.Queues {
		q := &s.Queues[i]
		stats, err := client.Stats(ctx, m.VHost, q.Name)
		switch {
		case errors.Is(err, rabbitmqadmin.ErrNotFound):
			q.Missing = true
			continue
		case errors.Is(err, rabbitmqadmin.ErrUnauthorized), errors.Is(err, rabbitmqadmin.ErrVHostUnreadable):
			q.Unseen = err.Error()
			continue
		case err != nil:
			return snapshot{}, err
		}
		q.Messages, q.Ready, q.Unacknowledged, q.Consumers = stats.Messages, stats.Ready, stats.Unacknowledged, stats.Consumers
		q.In, q.Out, q.Acked, q.Oldest = stats.In, stats.Out, stats.Acked, stats.Oldest
		if stats.State != "running" {
			q.State = stats.State
		}
		if q.Messages == nil {
			if err := r.count(ctx, client, m.VHost, q); err != nil {
				return snapshot{}, err
			}
		}
		if q.Messages == nil {
			q.Unseen = fmt.Sprintf("how many messages queue %q holds: the broker has no count, which takes some seconds on a new queue", q.Name)
		}
	}
	return s, nil
}

// count counts the messages of a queue that has no statistics yet.
func (r *rabbitMQ) count(ctx context.Context, client *rabbitmqadmin.Client, vhost string, q *queueState) error {
	depths, err := client.DepthsNow(ctx, vhost, []string{q.Name})
	if err == nil && len(depths) == 1 && depths[0].Known {
		d := depths[0]
		q.Messages, q.Ready, q.Unacknowledged = &d.Total, &d.Ready, &d.Unacknowledged
	}
	return err
}

// messageOf is a delivery, with what is known of how it came where it is.
func messageOf(m topology.Manifest, d *amqp091.Delivery) redeliver.DeadMessage {
	msg := consumer.ParseDead(transport.MessageOf(d), m.Headers)
	msg.Topic = m.Topic
	return msg
}

// filterOf is a filter of deliveries; nil wants all.
func filterOf(m topology.Manifest, want wanted) func(*amqp091.Delivery) bool {
	if want == nil {
		return nil
	}
	return func(d *amqp091.Delivery) bool {
		msg := messageOf(m, d)
		return want(&msg)
	}
}

func (r *rabbitMQ) Browse(ctx context.Context, m topology.Manifest, queue topology.ManifestQueue, o browseOptions) (browsed, error) {
	dial, err := r.dial(m.VHost)
	if err != nil {
		return browsed{}, err
	}
	look, err := r.look(ctx, dial, m.VHost, queue)
	if err != nil {
		return browsed{}, advised(m, queue, err)
	}
	if err := look.refuse(o.AcceptLoss); err != nil {
		return browsed{}, err
	}
	var out browsed
	options := transfer.Options{
		Dial: dial, Source: queue.Name, Limit: look.wanted(o.Limit), DryRun: true, Filter: filterOf(m, o.Filter),
		Each: func(d *amqp091.Delivery) {
			if o.Limit == 0 || len(out.Messages) < o.Limit {
				out.Messages = append(out.Messages, messageOf(m, d))
			}
		},
	}
	report, err := transfer.Move(ctx, options)
	if err != nil {
		return browsed{}, fmt.Errorf("looking at queue %q: %w", queue.Name, advised(m, queue, err))
	}
	out.Found, out.Looked = report.Found, report.Moved+report.Skipped
	out.Notes = look.notes(out.Looked, out.Looked >= out.Found)
	return out, nil
}

func (r *rabbitMQ) Move(ctx context.Context, m topology.Manifest, queue topology.ManifestQueue, o moveOptions) (transfer.Report, error) {
	dial, err := r.dial(m.VHost)
	if err != nil {
		return transfer.Report{Left: -1}, err
	}
	var looked look
	if o.DryRun || o.Filter != nil { // what is looked at is given back
		if looked, err = r.look(ctx, dial, m.VHost, queue); err != nil {
			return transfer.Report{Left: -1}, advised(m, queue, err)
		}
		if err := looked.refuse(o.AcceptLoss); err != nil {
			return transfer.Report{Left: -1}, err
		}
	}
	options := transfer.Options{
		Dial: dial, Source: queue.Name, Exchange: o.Exchange, RoutingKey: o.RoutingKey, Limit: o.Limit, Rate: o.Rate,
		DryRun: o.DryRun, Filter: filterOf(m, o.Filter), Progress: o.Progress,
	}
	if o.Queue != "" {
		options.Exchange, options.RoutingKey = "", o.Queue
	}
	if o.Replay {
		options = transfer.Replay(m, options, o.KeepCount)
	}
	if o.Exchange != "" && o.RoutingKey == "" && options.Route == nil { // each message's own
		options.Route = func(d *amqp091.Delivery) string { return m.Headers.OriginOf(amqp.PlainHeaders(d.Headers)).RoutingKey }
	}
	report, err := transfer.Move(ctx, options)
	for _, note := range looked.notes(givenBack(report, o), report.Moved+report.Skipped+report.Failed+report.Doubtful >= report.Found) {
		o.Note(note)
	}
	for i := range report.Failures {
		report.Failures[i].Err = advised(m, queue, report.Failures[i].Err)
	}
	return report, advised(m, queue, err)
}

// handedOutWithin is how long the management API may take to say how many messages are handed out, which nothing depends on.
const handedOutWithin = 5 * time.Second

// HandedOut asks the management API, where there is one. A quorum queue's count is up to 10 seconds old; without a consumer
// it may be that of a look which is over, and is not told.
func (r *rabbitMQ) HandedOut(ctx context.Context, m topology.Manifest, queue topology.ManifestQueue) (*int64, error) {
	limited, cancel := context.WithTimeout(ctx, handedOutWithin)
	defer cancel()
	client, err := r.admin(limited)
	if err != nil {
		return nil, nil //nolint:nilnil // messages are moved without it
	}
	depths, err := client.DepthsNow(limited, m.VHost, []string{queue.Name})
	if err != nil || !depths[0].Known {
		return nil, nil //nolint:nilnil // as above
	}
	n := depths[0].Unacknowledged
	if n == 0 || queue.Type == topology.Classic {
		return &n, nil
	}
	dial, err := r.dial(m.VHost)
	if err != nil {
		return nil, err
	}
	_, consumers, err := transfer.Ready(ctx, dial, queue.Name)
	if err != nil || consumers == 0 {
		return nil, advised(m, queue, err)
	}
	return &n, nil
}

func (r *rabbitMQ) Ready(ctx context.Context, m topology.Manifest, queue topology.ManifestQueue) (int, error) {
	dial, err := r.dial(m.VHost)
	if err != nil {
		return 0, err
	}
	n, _, err := transfer.Ready(ctx, dial, queue.Name)
	return n, advised(m, queue, err)
}

func (r *rabbitMQ) Purge(ctx context.Context, m topology.Manifest, queue topology.ManifestQueue) (int, error) {
	dial, err := r.dial(m.VHost)
	if err != nil {
		return 0, err
	}
	n, err := transfer.Purge(ctx, dial, queue.Name)
	return n, advised(m, queue, err)
}

// elseAs is what to do without a permission.
const elseAs = "redeliver permissions --role operator prints what an operator needs, and --username works as another user"

// advised is an error of AMQP with what to do about it, in the command's words.
func advised(m topology.Manifest, queue topology.ManifestQueue, err error) error {
	var dialled *amqp.DialError
	code := amqp.ReplyCode(err)
	advice := ""
	switch {
	case err == nil, errors.Is(err, amqp.ErrNoExchange), errors.Is(err, amqp.ErrUnroutable):
		return transfer.Advise(err)
	case errors.Is(err, amqp.ErrForbidden):
		advice = `the user lacks write permission on that exchange ("amq.default" is the name of the default one): ` + elseAs
	case errors.As(err, &dialled) && amqp.AtLimit(err):
		advice = "the broker allows no more connections of this node, vhost or user: close some, or raise the limit"
	case errors.As(err, &dialled) && code == amqp091.NotAllowed:
		advice = fmt.Sprintf("it has no vhost %[1]q, or the user has no permission in it. Is the address right (--amqp-url, %[2]s)? Else: rabbitmqctl add_vhost %[3]s, "+
			"or the permissions that redeliver permissions --role operator prints", m.VHost, rabbitmqadmin.EnvName("amqp_endpoints"), shellQuote(m.VHost))
	case errors.As(err, &dialled) && code == amqp091.AccessRefused:
		advice = fmt.Sprintf("are user and password, or the token, right for AMQP too (--username, %s, --password-file, --token-file, or %s)?",
			rabbitmqadmin.EnvName("password"), envAMQPURL)
	case code == amqp091.AccessRefused:
		advice = fmt.Sprintf("the user lacks that permission on queue %q in vhost %q: %s", queue.Name, m.VHost, elseAs)
	case code == amqp091.NotFound:
		advice = fmt.Sprintf("redeliver verify says what else of topic %q is missing in vhost %q, and terraform apply makes it", m.Topic, m.VHost)
	case code == amqp091.ResourceLocked:
		advice = "another connection has the queue for itself: it goes when that closes"
	}
	if advice == "" {
		return err
	}
	return fmt.Errorf("%w; %s", err, advice)
}
