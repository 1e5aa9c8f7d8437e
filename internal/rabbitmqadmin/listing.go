package rabbitmqadmin

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strconv"

	rabbithole "github.com/michaelklishin/rabbit-hole/v2"
)

const (
	// pageSize is the largest that RabbitMQ allows.
	pageSize = 500
	// pageAbove is how many objects of a vhost are still read in one answer. The broker sorts the whole list for every
	// page, so that paging is slower; it keeps the answers of very large vhosts under time and size limits.
	pageAbove = 50_000
	// pageTries is how often paging starts again because the number of objects changed under it, before everything is
	// read in one answer after all.
	pageTries = 3
)

// listing reads all objects of a kind in a vhost: one request where the broker has few, or this is the second list; else
// two where there are many (the first tells how many), and pages where there are very many. RabbitMQ pages queues and
// exchanges. Bindings, consumers and policies it does not: page and page_size change nothing of what it answers (3.10, 4.0
// and 4.3), so that these come in one answer, whatever its size.
type listing[T any] struct {
	c           *Client
	what, vhost string
	params      url.Values
	// total is how many of the kind the user can see in all vhosts; 0 where the broker did not say.
	total func(Broker) int
	// send makes the request.
	send func(rh *rabbithole.Client) error
}

// page is the API's JSON for a page.
type page[T any] struct {
	Items      []T `json:"items"`
	Page       int `json:"page"`
	PageCount  int `json:"page_count"`
	TotalCount int `json:"total_count"`
}

func (l listing[T]) read(ctx context.Context) ([]T, error) {
	c := l.c
	c.mu.Lock()
	large := c.large[l.what+l.vhost]
	few := c.broker != nil && l.total(*c.broker) > 0 && l.total(*c.broker) <= c.pageAbove
	c.mu.Unlock()
	if large || few {
		return l.atOnce(ctx)
	}
	first, err := l.page(ctx, 1)
	switch {
	case err != nil:
		return nil, err
	case first.PageCount <= 1:
		return first.Items, nil
	case first.TotalCount > c.pageAbove:
		return l.byPage(ctx, first)
	}
	c.mu.Lock()
	c.large[l.what+l.vhost] = true
	c.mu.Unlock()
	return l.atOnce(ctx)
}

func (l listing[T]) atOnce(ctx context.Context) ([]T, error) {
	var all []T
	err := l.ask(ctx, &all, nil)
	return all, err
}

// byPage reads page after page. An object that is deleted meanwhile moves its successors to an earlier page, so that one
// of them may be missed: when the total changed, or the page is not there any more (400), the pages are not believed.
func (l listing[T]) byPage(ctx context.Context, first page[T]) ([]T, error) {
	for range pageTries {
		all := make([]T, 0, first.TotalCount)
		at, steady := first, true
		for {
			all = append(all, at.Items...)
			if at.Page >= at.PageCount {
				break
			}
			var err error
			var refused *Error
			at, err = l.page(ctx, at.Page+1)
			outOfRange := errors.As(err, &refused) && refused.Status == http.StatusBadRequest
			if err != nil && !outOfRange {
				return nil, err
			}
			if steady = !outOfRange && at.TotalCount == first.TotalCount; !steady {
				break
			}
		}
		if steady && len(all) == first.TotalCount {
			return all, nil
		}
		var err error
		if first, err = l.page(ctx, 1); err != nil {
			return nil, err
		}
	}
	return l.atOnce(ctx)
}

func (l listing[T]) page(ctx context.Context, number int) (page[T], error) {
	var got page[T]
	err := l.ask(ctx, &got, query("page", strconv.Itoa(number), "page_size", strconv.Itoa(pageSize)))
	return got, err
}

func (l listing[T]) ask(ctx context.Context, into any, more url.Values) error {
	x := l.c.newCall(ctx, opList, l.what, l.vhost)
	x.into, x.query = into, url.Values{}
	maps.Copy(x.query, l.params)
	maps.Copy(x.query, more)
	return x.run(l.send)
}
