package rabbitmqadmin

import (
	"context"
	"time"

	rabbithole "github.com/michaelklishin/rabbit-hole/v2"
)

// Stats are what the broker's statistics say of a queue, up to 10 s late. What they do not say is nil.
type Stats struct {
	// State is what the broker says of the queue's process: "running" where all is well.
	State string
	// Messages (all of them), Ready and Unacknowledged are how many messages the queue holds.
	Messages, Ready, Unacknowledged *int64
	// Consumers is how many consumers it has.
	Consumers *int
	// In, Out and Acked are how many messages a second are published to it, handed out, and acknowledged.
	In, Out, Acked *float64
	// Oldest is when the message at the head was made, by its timestamp property. Classic queues alone tell, of messages
	// that have one. Zero where the broker does not say.
	Oldest time.Time
}

const columnsStats = "name,vhost,state,consumers,messages,messages_ready,messages_unacknowledged,head_message_timestamp," +
	"message_stats.publish_details.rate,message_stats.deliver_get_details.rate,message_stats.ack_details.rate"

type rate struct {
	Rate *float64 `json:"rate"`
}

// Stats reads the statistics of one queue. A queue that is not there is [ErrNotFound].
func (c *Client) Stats(ctx context.Context, vhost, name string) (Stats, error) {
	var got struct {
		Name           string `json:"name"`
		VHost          string `json:"vhost"`
		State          string `json:"state"`
		Consumers      *int   `json:"consumers"`
		Messages       *int64 `json:"messages"`
		Ready          *int64 `json:"messages_ready"`
		Unacknowledged *int64 `json:"messages_unacknowledged"`
		Head           any    `json:"head_message_timestamp"`
		Rates          struct {
			Publish rate `json:"publish_details"`
			Deliver rate `json:"deliver_get_details"`
			Ack     rate `json:"ack_details"`
		} `json:"message_stats"`
	}
	x := c.newCall(ctx, opRead, queueObject(name), vhost)
	x.into = &got
	if err := x.run(func(rh *rabbithole.Client) error {
		_, err := rh.GetQueueWithParameters(vhost, name, query("columns", columnsStats))
		return err
	}); err != nil {
		return Stats{}, err
	}
	if got.Name != name || got.VHost != vhost {
		return Stats{}, x.somethingElse(got.Name, got.VHost)
	}
	c.sawVHost(x.answered, vhost)
	s := Stats{
		State: got.State, Messages: got.Messages, Ready: got.Ready, Unacknowledged: got.Unacknowledged, Consumers: got.Consumers,
		In: got.Rates.Publish.Rate, Out: got.Rates.Deliver.Rate, Acked: got.Rates.Ack.Rate,
	}
	if seconds, ok := got.Head.(float64); ok && seconds > 0 { // "" or null where there is none
		s.Oldest = time.Unix(int64(seconds), 0)
	}
	return s, nil
}
