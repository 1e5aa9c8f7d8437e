package rabbitmqadmin

import (
	"fmt"
	"strings"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// NotEmptyError says that [Client.SafeDelete] deleted nothing because queues hold messages, or may hold some.
type NotEmptyError struct {
	VHost string
	// Depths are those of the queues that are not known to be empty.
	Depths []Depth
}

func (e *NotEmptyError) Error() string {
	parts := make([]string, len(e.Depths))
	unknown := false
	for i, d := range e.Depths {
		parts[i] = d.String()
		unknown = unknown || !d.Known
	}
	text := fmt.Sprintf("refusing to delete from vhost %q: %s; every message would be lost. Let consumers drain %s, move or purge the messages, or set delete_non_empty = true to lose them",
		e.VHost, strings.Join(parts, ", "), plural(len(e.Depths), "it", "them"))
	if unknown {
		text += ". RabbitMQ has no counts of a queue that was just created, or that has no leader: if it stays like this, look at its state"
	}
	return text
}

// String says how many messages the queue holds, in words.
func (d Depth) String() string {
	switch {
	case !d.Exists:
		return queueObject(d.Queue) + " does not exist"
	case !d.Known:
		return queueObject(d.Queue) + " may hold messages (no count)"
	}
	text := fmt.Sprintf("%s holds %d %s (%d ready, %d unacknowledged", queueObject(d.Queue), d.Total,
		plural(int(d.Total), "message", "messages"), d.Ready, d.Unacknowledged)
	if waiting := d.Total - d.Ready - d.Unacknowledged; waiting > 0 {
		text += fmt.Sprintf(", %d waiting to be dead-lettered or redelivered", waiting)
	}
	return text + ")"
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// PointedAtError says that [Client.SafeDelete] deleted nothing because other queues dead-letter to one of its queues.
type PointedAtError struct {
	VHost, Queue string
	// By are the queues whose dead letters would be lost.
	By []string
}

func (e *PointedAtError) Error() string {
	quoted := make([]string, len(e.By))
	for i, name := range e.By {
		quoted[i] = fmt.Sprintf("%q", name)
	}
	return fmt.Sprintf("refusing to delete %s from vhost %q: %s %s %s to it, and what they dead-letter would be lost; delete or change %s first",
		queueObject(e.Queue), e.VHost, plural(len(e.By), "queue", "queues"), strings.Join(quoted, ", "),
		plural(len(e.By), "dead-letters", "dead-letter"), plural(len(e.By), "that queue", "those queues"))
}

// RestoreError says that bindings which [Client.SafeDelete] had removed are missing now.
type RestoreError struct {
	VHost   string
	Missing []topology.Binding
	// Refusal is why nothing was deleted; Cause is why the first of the bindings could not be restored.
	Refusal, Cause error
}

func (e *RestoreError) Error() string {
	missing := make([]string, len(e.Missing))
	for i, b := range e.Missing {
		missing[i] = bindingObject(b)
	}
	return fmt.Sprintf("%v. Moreover, bindings that were removed to look whether the queues are empty could not be restored, and messages are not routed until they are back (apply again to create them): %s in vhost %q: %v",
		e.Refusal, strings.Join(missing, "; "), e.VHost, e.Cause)
}

// Unwrap returns both errors.
func (e *RestoreError) Unwrap() []error { return []error{e.Refusal, e.Cause} }
