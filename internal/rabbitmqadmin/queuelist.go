package rabbitmqadmin

import (
	"context"
	"net/url"
	"strconv"

	rabbithole "github.com/michaelklishin/rabbit-hole/v2"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

const (
	// pageSize is the largest that RabbitMQ allows.
	pageSize = 500
	// pageAbove is how many queues of a vhost are still read in one answer. The broker sorts the whole list for every
	// page, so that paging is slower; it keeps the answers of very large vhosts under time and size limits.
	pageAbove = 50_000
	// pageTries is how often paging starts again because the number of queues changed under it, before everything is
	// read in one answer after all.
	pageTries = 3
)

// wirePage is the API's JSON for a page.
type wirePage[T any] struct {
	Items      []T `json:"items"`
	Page       int `json:"page"`
	PageCount  int `json:"page_count"`
	TotalCount int `json:"total_count"`
}

// Queues lists the queues of a vhost with their arguments, without counts and consumers. It reads no statistics, so
// that it is cheap (a second for 10,000 queues) and never late.
func (c *Client) Queues(ctx context.Context, vhost string) ([]LiveQueue, error) {
	wire, err := c.listQueues(ctx, vhost, query("disable_stats", "true", "columns", columnsList))
	if err != nil {
		return nil, err
	}
	out := make([]LiveQueue, len(wire))
	for i, w := range wire {
		if w.VHost == "" {
			w.VHost = vhost
		}
		if w.Arguments == nil {
			w.Arguments = topology.Arguments{}
		}
		out[i] = w.live()
	}
	return out, nil
}

// listQueues reads all queues of a vhost: one request where the broker has few, or this is the second list; else two where
// there are many (the first tells how many), and pages where there are very many.
func (c *Client) listQueues(ctx context.Context, vhost string, params url.Values) ([]wireQueue, error) {
	c.mu.Lock()
	large := c.large[vhost]
	few := c.broker != nil && c.broker.Queues > 0 && c.broker.Queues <= c.pageAbove
	c.mu.Unlock()
	if large || few {
		return c.listQueuesAtOnce(ctx, vhost, params)
	}
	first, err := c.queuePage(ctx, vhost, params, 1)
	switch {
	case err != nil:
		return nil, err
	case first.PageCount <= 1:
		return first.Items, nil
	case first.TotalCount > c.pageAbove:
		return c.listQueuesByPage(ctx, vhost, params, first)
	}
	c.mu.Lock()
	c.large[vhost] = true
	c.mu.Unlock()
	return c.listQueuesAtOnce(ctx, vhost, params)
}

func (c *Client) listQueuesAtOnce(ctx context.Context, vhost string, params url.Values) ([]wireQueue, error) {
	var out []wireQueue
	x := c.newCall(ctx, opList, "the queues", vhost)
	x.into = &out
	err := x.run(func(rh *rabbithole.Client) error {
		_, err := rh.ListQueuesWithParametersIn(vhost, params)
		return err
	})
	return out, err
}

// listQueuesByPage reads page after page. A queue that is deleted meanwhile moves its successors to an earlier page, so
// that one of them may be missed: when the total changed the pages are not believed.
func (c *Client) listQueuesByPage(ctx context.Context, vhost string, params url.Values, first wirePage[wireQueue]) ([]wireQueue, error) {
	for range pageTries {
		all := make([]wireQueue, 0, first.TotalCount)
		page, steady := first, true
		for {
			all = append(all, page.Items...)
			if page.Page >= page.PageCount {
				break
			}
			var err error
			if page, err = c.queuePage(ctx, vhost, params, page.Page+1); err != nil {
				return nil, err
			}
			if steady = page.TotalCount == first.TotalCount; !steady {
				break
			}
		}
		if steady && len(all) == first.TotalCount {
			return all, nil
		}
		var err error
		if first, err = c.queuePage(ctx, vhost, params, 1); err != nil {
			return nil, err
		}
	}
	return c.listQueuesAtOnce(ctx, vhost, params)
}

func (c *Client) queuePage(ctx context.Context, vhost string, params url.Values, number int) (wirePage[wireQueue], error) {
	var page wirePage[wireQueue]
	x := c.newCall(ctx, opList, "the queues", vhost)
	x.into = &page
	x.query = query("page", strconv.Itoa(number), "page_size", strconv.Itoa(pageSize))
	err := x.run(func(rh *rabbithole.Client) error {
		_, err := rh.PagedListQueuesWithParametersIn(vhost, params)
		return err
	})
	return page, err
}
