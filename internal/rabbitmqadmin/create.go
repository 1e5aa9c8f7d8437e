package rabbitmqadmin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"

	rabbithole "github.com/michaelklishin/rabbit-hole/v2"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// Outcome is what a declaration did.
type Outcome int

const (
	// Unknown: the object is there and is as declared, but an earlier try of this very call may have made it, because its
	// answer was lost. Who read in the same run that there was none may take it for Created; nobody may call it Existed, nor
	// delete it as their own without having read before.
	Unknown Outcome = iota
	// Created: this call made the object.
	Created
	// Existed: the object was there before, equal in all that RabbitMQ compares.
	Existed
)

func (o Outcome) String() string {
	switch o {
	case Created:
		return "created"
	case Existed:
		return "existed"
	default:
		return "unknown"
	}
}

// CreateQueue is [Client.DeclareQueue] for those who need not know whether the queue was there before.
func (c *Client) CreateQueue(ctx context.Context, vhost string, q topology.Queue) error {
	_, err := c.DeclareQueue(ctx, vhost, q)
	return err
}

// DeclareQueue creates a durable queue with exactly q's arguments. One that exists and differs in what RabbitMQ compares
// is an [*InequivalentError]; that it does not differ there proves little: RabbitMQ does not compare every argument.
//
// One that this client has deleted is made again a second after that at the earliest: see recreate.go.
func (c *Client) DeclareQueue(ctx context.Context, vhost string, q topology.Queue) (Outcome, error) {
	x := c.newCall(ctx, opCreate, queueObject(q.Name), vhost)
	if err := checkName(x.object, vhost, q.Name); err != nil {
		return Unknown, err
	}
	if err := c.awaitConsumersGone(ctx, vhost, q.Name); err != nil {
		return Unknown, x.failure(nil, 0, err)
	}
	defer c.view.declaredQueue(vhost, q.Name)
	err := x.write(func(rh *rabbithole.Client) (*http.Response, error) {
		return rh.DeclareQueue(vhost, q.Name, rabbithole.QueueSettings{Durable: true, Arguments: maps.Clone(q.Arguments)})
	})
	if reason, ok := inequivalent(err); ok {
		return Existed, &InequivalentError{VHost: vhost, Queue: q.Name, Reason: reason}
	}
	return x.outcome(err), err
}

// outcome says what a declaration did that RabbitMQ answered: 201 when it made the object and 204 when it was there. A 204 to a second
// try, after the answer to the first was lost, says neither.
func (x *call) outcome(err error) Outcome {
	switch {
	case err == nil && x.status == http.StatusCreated:
		return Created
	case err == nil && !x.doubtful:
		return Existed
	default:
		return Unknown
	}
}

// checkName refuses what RabbitMQ would change: it drops line breaks from names, so that the object is not to be found
// again. Everything else is package topology's to judge, or the broker's.
func checkName(object, vhost, name string) error {
	if strings.ContainsAny(name, "\r\n") {
		return fmt.Errorf("cannot create %s in vhost %q: the name has a line break in it, which RabbitMQ would drop; choose another name", object, vhost)
	}
	return nil
}

// inequivalent reports whether a declaration was refused because another object has the name. RabbitMQ has no code for
// it, only a 400 and words, which have been the same since 2.x because they are AMQP's.
func inequivalent(err error) (reason string, ok bool) {
	var e *Error
	if errors.As(err, &e) && e.Status == http.StatusBadRequest && strings.HasPrefix(e.Reason, "inequivalent arg ") {
		return e.Reason, true
	}
	return "", false
}

// gone turns "it is not there" into success.
func gone(err error) error {
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// DeleteQueue deletes a queue with all that is in it; one that is gone is fine. [Client.SafeDelete] looks first.
func (c *Client) DeleteQueue(ctx context.Context, vhost, name string) error {
	return gone(c.deleteQueue(ctx, vhost, name, false))
}

func (c *Client) deleteQueue(ctx context.Context, vhost, name string, ifEmpty bool) error {
	defer c.deleted.note(vhost, name)
	defer c.view.deletedQueue(vhost, name)
	x := c.newCall(ctx, opDelete, queueObject(name), vhost)
	return x.write(func(rh *rabbithole.Client) (*http.Response, error) {
		if ifEmpty {
			return rh.DeleteQueue(vhost, name, rabbithole.QueueDeleteOptions{IfEmpty: true})
		}
		return rh.DeleteQueue(vhost, name)
	})
}
