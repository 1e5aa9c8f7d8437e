package redeliver

import "fmt"

// ReplayFrom names a queue that messages are replayed from.
type ReplayFrom string

// The queues of a topic that messages are set aside in.
const (
	// ReplayDead is the dead-letter queue.
	ReplayDead ReplayFrom = "dead_letter_queue"
	// ReplayParked is the parked queue.
	ReplayParked ReplayFrom = "parked_queue"
)

// ReplayOptions say which messages of a dead-letter or parked queue are
// replayed, and where to. The zero value replays all dead letters to the work
// queue, as if they had never been tried.
type ReplayOptions struct {
	// From is the queue that is replayed.
	//
	// Defaults to ReplayDead.
	From ReplayFrom

	// Exchange and RoutingKey are what the messages are published with. An empty
	// exchange is the default one, of which the routing key is the name of a
	// queue. Where both are empty, messages go back to the work queue; those of a
	// topic that is sequenced over shards to the exchange that spreads them, with
	// the routing key that they had. On Amazon SQS there are no exchanges, and
	// RoutingKey is the name of a queue of the same account and region.
	//
	// The user needs write permission on the exchange ("amq.default" is the name
	// of the default one).
	Exchange, RoutingKey string

	// Limit is how many messages are replayed at most.
	//
	// Defaults to 0: all that are there when the replay begins.
	Limit int

	// Filter, where it is set, says which messages are replayed. The others stay.
	Filter func(*DeadMessage) bool

	// DryRun replays nothing and reports what would be. Where the target would take
	// nothing, the messages count as Failed, and the error says why: the exchange or,
	// of the default exchange, the queue does not exist, or the user may not write to
	// it. (Whether another exchange leads to a queue is known only when something is
	// published.) Every message is looked at and given back, which before RabbitMQ 4.3 spends one of its deliveries on a
	// quorum queue: the dead-letter queues of this product have a million of them.
	DryRun bool

	// KeepCount replays messages with the count of their retries and their age.
	// Without it both begin again: the convention's count is removed, and so is an
	// earliest time of delivery; the convention's header that says when a message
	// was first seen becomes now and, where the topic has a give_up_after, so does
	// the timestamp property, since a message that was given up because of its age
	// would be again. Headers that say why it failed are kept. Amazon SQS counts and
	// dates a message anew wherever it goes, and KeepCount is refused.
	KeepCount bool

	// Rate is how many messages are replayed in a second at most, so that a
	// service that has just recovered is not hit by everything at once. Amazon SQS
	// lends messages for a time: below ten a second no more are received at a time
	// than may move in one second.
	//
	// Defaults to 0: no limit.
	Rate float64

	// Progress, where it is set, is told a few times in a second how far the
	// replay is. The replay waits for it.
	Progress func(ReplayReport)
}

// ReplayReport says what became of the messages. Every message that was looked
// at is counted once: Replayed + Skipped + Failed + Doubtful.
type ReplayReport struct {
	// From is the name of the queue that was replayed.
	From string
	// Exchange and RoutingKey are what the messages were published with. An empty
	// exchange is the default one, and an empty key of another one is mostly each
	// message's own; see ReplayOptions.
	Exchange, RoutingKey string
	// DryRun says that nothing was replayed: Replayed counts what would have been.
	DryRun bool
	// Found is how many messages it had when the replay began: the most that are
	// looked at. Amazon SQS counts approximately: there it is raised to what was
	// looked at.
	Found int
	// Replayed were copied, confirmed by the broker, taken by a queue, and removed
	// from the queue; in a dry run, would have been.
	Replayed int
	// Skipped were not wanted by the filter. They are still there.
	Skipped int
	// Failed could not be copied; Failures says why. They are still there.
	Failed int
	// Doubtful may be there twice: the broker did not confirm their copies, which it
	// may have all the same, or the connection was lost before they could be removed.
	Doubtful int
	// Left is how many messages the queue had afterwards; -1 where the broker could
	// not be asked.
	Left int
	// Failures are the reasons why messages failed, or are doubtful.
	Failures []ReplayFailure
}

// ReplayFailure is one reason why messages were not replayed.
type ReplayFailure struct {
	// Err is what was said of the first one.
	Err error
	// MessageID is the first one's, and Count how many there are for that reason.
	MessageID string
	Count     int
	// Unknown: the broker may have the copies all the same, because a connection
	// was lost or it did not answer in time. Those are Doubtful, the others Failed.
	Unknown bool
}

// String sums the report up for a log.
func (r ReplayReport) String() string {
	done := "replayed"
	if r.DryRun {
		done = "would be replayed"
	}
	s := fmt.Sprintf("%d found in %q, %d %s", r.Found, r.From, r.Replayed, done)
	switch {
	case r.Exchange != "":
		s += fmt.Sprintf(" to exchange %q", r.Exchange)
	case r.RoutingKey != "":
		s += fmt.Sprintf(" to queue %q", r.RoutingKey)
	}
	for _, part := range []struct {
		n    int
		what string
	}{{r.Skipped, "skipped"}, {r.Failed, "failed"}, {r.Doubtful, "doubtful (they may be there twice)"}} {
		if part.n > 0 {
			s += fmt.Sprintf(", %d %s", part.n, part.what)
		}
	}
	if r.Left >= 0 {
		s += fmt.Sprintf(", %d left", r.Left)
	}
	return s
}
