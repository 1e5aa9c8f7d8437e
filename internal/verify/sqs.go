package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/sqsadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/sqsapi"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// ReadSQS reads a queue of Amazon SQS. The error matches [sqsadmin.ErrNotFound] where there is none.
type ReadSQS func(ctx context.Context, q topology.ManifestQueue) (sqsadmin.LiveQueue, error)

// SQS holds a manifest of a topic on Amazon SQS against the account. What the caller may not see is unknown, and no error;
// an error is that nobody answered, or that the caller is not known.
func SQS(ctx context.Context, read ReadSQS, m topology.Manifest) (Report, error) {
	report := Report{Topic: m.Topic, Notes: []string{"SQS tells nobody who receives from a queue, and counts messages approximately."}}
	queues := []sqsQueue{{m.WorkQueue, topology.RoleWork}}
	for _, end := range []struct {
		target *topology.ManifestTarget
		role   topology.Role
	}{{m.DeadLetter, topology.RoleDeadLetter}, {m.Parked, topology.RoleParked}} {
		if end.target != nil {
			queues = append(queues, sqsQueue{end.target.ManifestQueue, end.role})
		}
	}
	for _, q := range queues {
		o, err := q.look(ctx, read, m)
		if denied, _ := sqsapi.Denied(err); denied {
			report.Unseen = append(report.Unseen, err.Error())
		} else if err != nil {
			return Report{}, err
		}
		report.Objects = append(report.Objects, o)
	}
	report.redriveTarget(m)
	return report, nil
}

// sqsQueue is a queue of a manifest.
type sqsQueue struct {
	topology.ManifestQueue
	role topology.Role
}

// look is how the queue is.
func (q sqsQueue) look(ctx context.Context, read ReadSQS, m topology.Manifest) (Object, error) {
	o := Object{Kind: Queue, Name: q.Name, Role: q.role, Status: Present}
	live, err := read(ctx, q.ManifestQueue)
	switch {
	case errors.Is(err, sqsadmin.ErrNotFound):
		o.Status = Missing
		return o, nil
	case err != nil:
		o.Status = Unknown
		return o, err
	}
	depth := live.Depth()
	o.Messages = &rabbitmqadmin.Depth{
		Queue: q.Name, Total: int64(depth.Total()), Ready: int64(depth.Visible), Unacknowledged: int64(depth.InFlight), Exists: true, Known: true,
	}
	if q.role == topology.RoleWork {
		o.Differences = workDifferences(q.Attributes, live.Attributes)
	} else {
		o.Differences = q.deadEndDifferences(live.Attributes, m)
	}
	if topology.Breaking(o.Differences) {
		o.Status = Drifted
	}
	return o, nil
}

// workDifferences are those of the work queue's attributes, of which a manifest has all but the access policy.
func workDifferences(want, have topology.SQSAttributes) []topology.Difference {
	have = maps.Clone(have)
	delete(have, topology.AttrPolicy)
	var out []topology.Difference
	for _, d := range topology.DiffSQSAttributes(want, have) {
		out = append(out, topology.Difference{Key: d.Key, Want: d.Want, Live: d.Have, Meaning: topology.ChangesBehaviour, Explanation: d.Explanation})
	}
	return out
}

// deadEndDifferences are those of a dead-letter or parked queue, of which a manifest has no attributes: its type, and what
// would keep messages out of it or have them end early.
func (q sqsQueue) deadEndDifferences(have topology.SQSAttributes, m topology.Manifest) []topology.Difference {
	var out []topology.Difference
	differ := func(key, want, live, meaning string) {
		out = append(out, topology.Difference{Key: key, Want: want, Live: live, Meaning: topology.ChangesBehaviour, Explanation: meaning})
	}
	if want := q.Type == topology.FIFO; want != have.FIFO() {
		differ(topology.AttrFIFO, strconv.FormatBool(want), strconv.FormatBool(have.FIFO()), "SQS moves messages between queues of one type only, and a queue's type cannot be changed")
	}
	if q.role == topology.RoleDeadLetter && !lets(have[topology.AttrRedriveAllowPolicy], m.WorkQueue.ARN) {
		want := topology.CanonicalJSON(map[string]any{"redrivePermission": "byQueue", "sourceQueueArns": []any{m.WorkQueue.ARN}})
		differ(topology.AttrRedriveAllowPolicy, want, have[topology.AttrRedriveAllowPolicy],
			"it does not let the work queue in: messages that fail stay in the work queue, and are received again until their retention ends")
	}
	if work := m.WorkQueue.Attributes.Retention(); have.Retention() < work {
		meaning := fmt.Sprintf("a message is kept for %s only, which is shorter than in the work queue", topology.FormatDuration(have.Retention()))
		if q.role == topology.RoleDeadLetter && q.Type == topology.Standard {
			meaning = "SQS counts a dead letter's age from when it was sent first: one that failed late is deleted as it arrives, silently"
		}
		differ(topology.AttrRetention, fmt.Sprintf("at least %d", int64(work.Seconds())), strconv.FormatInt(int64(have.Retention().Seconds()), 10), meaning)
	}
	return out
}

// lets reports whether a redrive-allow policy lets a queue use the one that has it as its dead-letter queue.
func lets(policy, source string) bool {
	var read struct {
		Permission string   `json:"redrivePermission"`
		Sources    []string `json:"sourceQueueArns"`
	}
	if policy == "" || json.Unmarshal([]byte(policy), &read) != nil {
		return true
	}
	switch read.Permission {
	case "denyAll":
		return false
	case "byQueue":
		return slices.Contains(read.Sources, source)
	}
	return true
}

// redriveTarget finds that the work queue leads to a dead-letter queue that is not there.
func (r *Report) redriveTarget(m topology.Manifest) {
	work := &r.Objects[0]
	if m.DeadLetter == nil || r.Objects[1].Status != Missing || work.Status == Missing || work.Status == Unknown {
		return
	}
	work.Status = Drifted
	work.Differences = append(work.Differences, topology.Difference{
		Key: KeyRedriveTarget, Want: m.DeadLetter.ARN, Meaning: topology.ChangesBehaviour,
		Explanation: fmt.Sprintf("the dead-letter queue is not there: messages that fail stay in the work queue, and are received again until their retention of %s ends",
			topology.FormatDuration(m.WorkQueue.Attributes.Retention())),
	})
}
