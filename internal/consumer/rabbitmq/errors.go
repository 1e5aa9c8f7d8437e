package rabbitmq

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/amqp"
	"github.com/redeliver/terraform-provider-redeliver/internal/consumer"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// bindError describes a failure to connect or to subscribe. The advice says
// what infrastructure has to provide.
func (b *Broker) bindError(kind error, address, advice string, err error) *redeliver.BindError {
	return &redeliver.BindError{
		Kind: kind, Topic: b.cfg.Topic, Queue: b.cfg.Queue, VHost: b.cfg.VHost, User: b.nodes.User(), Address: address,
		Advice: advice, Err: amqp.Said(err),
	}
}

// dialError says why no connection came about.
func (b *Broker) dialError(address string, err error) error {
	var (
		unknownCA  x509.UnknownAuthorityError
		wrongHost  x509.HostnameError
		badCert    x509.CertificateInvalidError
		notTLS     tls.RecordHeaderError
		unresolved *net.DNSError
	)
	switch {
	case errors.Is(err, context.Canceled): // that says nothing about the broker
		return fmt.Errorf("connecting to %s: %w", address, err)
	case errors.Is(err, amqp091.ErrSASL):
		return b.bindError(redeliver.ErrCredentials, address,
			"the broker offers none of the authentication mechanisms that the URL asks for (auth_mechanism)", nil)
	case errors.Is(err, amqp091.ErrCredentials), amqp.ReplyCode(err) == amqp091.AccessRefused:
		return b.bindError(redeliver.ErrCredentials, address,
			"check the user and the password in the URL (special characters are percent-encoded), and that the user exists; "+
				"the broker's log says which it was", serverReply(err))
	case amqp.AtLimit(err):
		return b.bindError(redeliver.ErrRefused, address, "there are as many connections as the broker allows on the node, in the vhost or for the user: "+
			"close some, or raise the limit", err)
	case errors.Is(err, amqp091.ErrVhost), amqp.ReplyCode(err) == amqp091.NotAllowed:
		return b.bindError(redeliver.ErrVHost, address,
			fmt.Sprintf("the vhost must exist and the user must have permissions in it; the manifest says vhost %q: "+
				"is the URL that of the broker where Terraform created it?", b.cfg.VHost), serverReply(err))
	case errors.As(err, &unknownCA), errors.As(err, &badCert):
		return b.bindError(redeliver.ErrUnreachable, address, "the broker's certificate is not trusted; set Config.TLS with its CA in RootCAs", err)
	case errors.As(err, &wrongHost):
		return b.bindError(redeliver.ErrUnreachable, address, "the broker's certificate is for another host; use its name in the URL, or set ServerName in Config.TLS", err)
	case errors.As(err, &notTLS):
		return b.bindError(redeliver.ErrUnreachable, address, "this port does not speak TLS; use amqp:// or the TLS port (5671)", err)
	case errors.As(err, &unresolved):
		return b.bindError(redeliver.ErrUnreachable, address, "the host name does not resolve; check the URL", err)
	case serverReply(err) != nil:
		return b.bindError(redeliver.ErrRefused, address, "", err)
	default:
		return b.bindError(redeliver.ErrUnreachable, address, "check the address, that the broker runs, and that this is its AMQP port (is TLS missing? then use amqps://)", err)
	}
}

// serverReply is err where it is the broker's own reply, else nil: the client
// library's guesses ("no access to this vhost") add nothing.
func serverReply(err error) error {
	var reply *amqp091.Error
	if errors.As(err, &reply) && reply.Server {
		return err
	}
	return nil
}

// subscribeError says why the queue could not be consumed.
func (b *Broker) subscribeError(address string, err error) error {
	queue := b.cfg.Queue
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("subscribing to queue %q at %s: %w", queue, address, err)
	}
	switch amqp.ReplyCode(err) {
	case amqp091.NotFound:
		return b.bindError(redeliver.ErrQueueNotFound, address, fmt.Sprintf(
			"the consumer declares nothing: apply the Terraform configuration that has the topic resource of %q, to this broker and vhost", b.cfg.Topic), err)
	case amqp091.AccessRefused:
		return b.bindError(redeliver.ErrPermission, address, fmt.Sprintf(
			"grant the user read permission on the queue (the provider function build_permissions gives the expression: role consumer for a work queue, "+
				"operator for a dead-letter queue), "+
				"unless the broker says that another consumer has exclusive use of %q", queue), err)
	case amqp091.ResourceLocked:
		return b.bindError(redeliver.ErrPermission, address, "the queue is exclusive to another connection: it is not the one that Terraform created", err)
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return b.bindError(redeliver.ErrUnreachable, address, "the broker answers and the queue does not: has it a leader? (rabbitmq-queues quorum_status says)", err)
	case serverReply(err) != nil:
		return b.bindError(redeliver.ErrRefused, address, "", err)
	default:
		return b.bindError(redeliver.ErrUnreachable, address, "", err)
	}
}

// publishError says why messages could not be published to a target.
func (b *Broker) publishError(target *topology.ManifestTarget, err error) error {
	name := target.Exchange
	if name == "" {
		name = "amq.default"
	}
	var e *redeliver.BindError
	switch {
	case errors.Is(err, amqp.ErrNoExchange):
		e = b.bindError(redeliver.ErrExchangeNotFound, b.nodes.Address(), fmt.Sprintf(
			"the consumer declares nothing: apply the Terraform configuration that has queue %q and its exchange", target.Name), err)
	case errors.Is(err, amqp.ErrForbidden):
		e = b.bindError(redeliver.ErrPermission, b.nodes.Address(), fmt.Sprintf(
			"grant the user write permission on the exchange, because messages are published to %q through it "+
				"(the provider function build_permissions gives the expressions for the role consumer)", target.Name), err)
	case serverReply(err) != nil, errors.Is(err, amqp.ErrNacked):
		e = b.bindError(redeliver.ErrRefused, b.nodes.Address(), "", err)
	default:
		e = b.bindError(redeliver.ErrUnreachable, b.nodes.Address(), "", err)
	}
	e.Exchange = name
	return e
}

// lostError says why a channel ended; reply is nil where it ended without an
// error.
func lostError(reply *amqp091.Error) error {
	if reply == nil {
		return &consumer.LostError{Reason: consumer.LostConnection, Err: errors.New("the connection was closed")}
	}
	switch {
	case reply.Code == amqp091.PreconditionFailed && strings.Contains(reply.Reason, "timed out"):
		// Before RabbitMQ 4.3: "delivery acknowledgement on channel 1 timed out". The text tells it from an unknown delivery
		// tag, which has the same code; only the log entry depends on it.
		return &consumer.LostError{Reason: consumer.LostConsumerTimeout, Err: amqp.Said(reply)}
	case reply.Server && reply.Recover:
		return &consumer.LostError{Reason: consumer.LostChannel, Err: amqp.Said(reply)}
	default:
		return &consumer.LostError{Reason: consumer.LostConnection, Err: amqp.Said(reply)}
	}
}
