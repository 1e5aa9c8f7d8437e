package rabbitmqadmin

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	rabbithole "github.com/michaelklishin/rabbit-hole/v2"
)

// Consumer is somebody who is subscribed to a queue.
type Consumer struct {
	Queue string
	// Tag is the consumer's and Connection the connection that it came by; both are "" where the user may not see them.
	Tag, Connection string
}

func (c Consumer) String() string {
	switch {
	case c.Tag == "":
		return "one that only users with the tag \"monitoring\" may see"
	case c.Connection == "":
		return fmt.Sprintf("%q", c.Tag)
	default:
		return fmt.Sprintf("%q of connection %q", c.Tag, c.Connection)
	}
}

// wireConsumer is a consumer in the API's JSON.
type wireConsumer struct {
	Tag     string  `json:"consumer_tag"`
	Channel details `json:"channel_details"`
	Queue   struct {
		Name string `json:"name"`
	} `json:"queue"`
}

func (w wireConsumer) live() Consumer {
	return Consumer{Queue: w.Queue.Name, Tag: w.Tag, Connection: w.Channel.Connection}
}

// subscribed are the consumers that the answer about one queue tells of, whoever asks (3.10 and 4.3): unlike the list of
// consumers it hides none. Where it tells of none there may be a count of them; nil is unknown.
func (w wireQueue) subscribed() []Consumer {
	switch {
	case w.Subscribed == nil && w.Consumers > 0:
		return slices.Repeat([]Consumer{{Queue: w.Name}}, w.Consumers)
	case w.Subscribed == nil:
		return nil
	}
	out := make([]Consumer, len(w.Subscribed))
	for i, c := range w.Subscribed {
		out[i] = c.live()
	}
	return out
}

// listConsumers lists the consumers of a vhost by queue. Of the list of consumers a user without the tag "monitoring" is
// shown their own alone (3.10 and 4.3): then the statistics of the queues say how many there are, up to 10 s late.
func (c *Client) listConsumers(ctx context.Context, vhost string) (map[string][]Consumer, error) {
	all, err := c.seesConnections(ctx)
	if err != nil {
		return nil, err
	}
	if !all {
		return c.countConsumers(ctx, vhost)
	}
	var got []wireConsumer
	x := c.newCall(ctx, opList, "the consumers", vhost)
	x.into = &got
	err = x.run(func(rh *rabbithole.Client) error {
		_, err := rh.ListConsumersIn(vhost)
		return err
	})
	out := map[string][]Consumer{}
	for _, w := range got {
		out[w.Queue.Name] = append(out[w.Queue.Name], w.live())
	}
	return out, err
}

func (c *Client) countConsumers(ctx context.Context, vhost string) (map[string][]Consumer, error) {
	wire, err := c.listQueues(ctx, vhost, query("columns", "name,consumers"))
	out := map[string][]Consumer{}
	for _, w := range wire {
		for range w.Consumers {
			out[w.Name] = append(out[w.Name], Consumer{Queue: w.Name})
		}
	}
	return out, err
}

// seesConnections reports whether the user is shown what is not their own.
func (c *Client) seesConnections(ctx context.Context) (bool, error) {
	tags, _, err := c.view.user.get(ctx, everything)
	return slices.Contains(tags, "monitoring") || slices.Contains(tags, "administrator"), err
}

// userTags are what the user may do with the management API.
func (c *Client) userTags(ctx context.Context) (tags, error) {
	var got struct {
		Tags tags `json:"tags"`
	}
	x := c.newCall(ctx, opRead, "the tags of the user", "")
	x.into = &got
	err := x.run(func(rh *rabbithole.Client) error {
		_, err := rh.Whoami()
		return err
	})
	return got.Tags, err
}

// tags are a list, which brokers before 3.11 write as text with commas.
type tags []string

func (t *tags) UnmarshalJSON(text []byte) error {
	var joined string
	if json.Unmarshal(text, &joined) == nil {
		*t = strings.Split(joined, ",")
		return nil
	}
	return json.Unmarshal(text, (*[]string)(t))
}

// details are those of a channel, which the broker writes as an empty list while it has none.
type details struct{ Connection string }

func (d *details) UnmarshalJSON(text []byte) error {
	var known struct {
		Connection string `json:"connection_name"`
	}
	if len(text) > 0 && text[0] == '{' {
		if err := json.Unmarshal(text, &known); err != nil {
			return err
		}
	}
	d.Connection = known.Connection
	return nil
}
