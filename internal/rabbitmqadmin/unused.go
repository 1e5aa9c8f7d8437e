package rabbitmqadmin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// DeleteExchangeIfUnused deletes an exchange that nothing uses any more: no binding from it or to it, no queue that
// dead-letters to it (by argument or by policy) and no exchange that has it as its
// alternate. RabbitMQ's own "if-unused" looks at the bindings from it only. Otherwise it is kept and usedBy says by what,
// in words. An exchange that is gone counts as deleted.
//
// No other write of this client to the exchange comes in between. Other clients' may.
func (c *Client) DeleteExchangeIfUnused(ctx context.Context, vhost, name string) (deleted bool, usedBy []string, err error) {
	unlock, err := c.exchanges.write(ctx, vhost, name)
	if err != nil {
		return false, nil, err
	}
	defer unlock()
	if usedBy, err = c.exchangeUsers(ctx, vhost, name); err != nil || len(usedBy) > 0 {
		return false, usedBy, err
	}
	err = gone(c.deleteExchange(ctx, vhost, name, true))
	var refused *Error
	if errors.As(err, &refused) && refused.Status == http.StatusBadRequest {
		// Somebody bound to it just now.
		if usedBy, usersErr := c.exchangeUsers(ctx, vhost, name); usersErr == nil && len(usedBy) > 0 {
			return false, usedBy, nil
		}
	}
	return err == nil, nil, err
}

// exchangeUsers says in words what uses an exchange.
func (c *Client) exchangeUsers(ctx context.Context, vhost, name string) ([]string, error) {
	at := &recent{Client: c}
	users, queues, err := c.usersIn(ctx, at, vhost, name)
	if err != nil || !at.aged || len(users) > len(queues) {
		return users, err
	}
	if left, err := c.still(ctx, vhost, queues); err != nil || len(left) == 0 {
		return nil, err
	}
	users, _, err = c.usersIn(ctx, fresh{c}, vhost, name)
	return users, err
}

// usersIn says in words what uses an exchange, and which queues are among that. The cheap questions come first, and the
// first answer ends it.
func (c *Client) usersIn(ctx context.Context, at sight, vhost, name string) (users, queues []string, err error) {
	from, to, err := at.ExchangeBindings(ctx, vhost, name)
	if err != nil {
		return nil, nil, err
	}
	for _, b := range slices.Concat(from, to) {
		users = append(users, bindingObject(b))
	}
	if len(users) > 0 {
		return users, nil, nil
	}
	all, err := at.Queues(ctx, vhost)
	if err != nil {
		return nil, nil, err
	}
	routes, err := deadLetterRoutes(ctx, at, vhost, all)
	if err != nil {
		return nil, nil, err
	}
	for queue, route := range routes {
		if route.exchange == name {
			queues = append(queues, queue)
			users = append(users, fmt.Sprintf("%s, whose %s it is", queueObject(queue), topology.ArgDeadLetterExchange))
		}
	}
	exchanges, err := at.exchanges(ctx, vhost)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range exchanges {
		if e.Arguments[argAlternateExchange] == name {
			users = append(users, fmt.Sprintf("%s, whose %s it is", exchangeObject(e.Name), argAlternateExchange))
		}
	}
	slices.Sort(users)
	return users, queues, nil
}
