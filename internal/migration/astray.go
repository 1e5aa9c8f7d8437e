package migration

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// AstrayError says that messages would not go where they are to go, because somebody has changed bindings that are the
// migration's. The run has stopped, and undoes nothing, which would take the same bindings.
type AstrayError struct {
	// Exchange leads to To, by name and kind, and is to lead to Want.
	Exchange string
	To       []string
	Want     string
}

func (e *AstrayError) Error() string {
	to := "nowhere"
	if len(e.To) > 0 {
		to = "to " + strings.Join(e.To, " and to ")
	}
	return fmt.Sprintf("exchange %q leads %s, where a migration has it lead to %s and nowhere else: somebody has changed its bindings. Messages would be lost or multiplied, so no more are moved: "+
		"remove the bindings of the exchange that lead elsewhere, and apply again, which goes on from here", e.Exchange, to, e.Want)
}

// leads tells to which of the two queues the switch or its branch leads. That it leads elsewhere is an [AstrayError].
func (m *run) leads(ctx context.Context, exchange string) (toQueue, toTemp bool, err error) {
	to, err := m.destinations(ctx, exchange)
	if err != nil {
		return false, false, err
	}
	queue, temp := queueNamed(m.Queue.Name), queueNamed(m.names.Queue.Name)
	for _, d := range to {
		if d != queue && d != temp {
			return false, false, &AstrayError{Exchange: exchange, To: to, Want: queue + " or " + temp}
		}
	}
	return slices.Contains(to, queue), slices.Contains(to, temp), nil
}

// straight refuses to move messages out of a queue where not all of them, and of what is published, would be in one of the two
// queues, once. Where the branch leads to the queue that they come from there would be no end to it.
func (m *run) straight(ctx context.Context, from string) error {
	toQueue, toTemp, err := m.leads(ctx, m.names.Switch)
	switch {
	case err != nil:
		return err
	case toQueue && toTemp:
		return &AstrayError{Exchange: m.names.Switch, To: []string{queueNamed(m.Queue.Name), queueNamed(m.names.Queue.Name)}, Want: "one of them"}
	default:
		return m.branchLeads(ctx, from)
	}
}

// branchLeads refuses a branch that does not lead to the other one of the two queues, or not only.
func (m *run) branchLeads(ctx context.Context, from string) error {
	other := m.names.Queue.Name
	if from == other {
		other = m.Queue.Name
	}
	to, err := m.destinations(ctx, m.names.Branch)
	if want := queueNamed(other); err == nil && !slices.Equal(to, []string{want}) {
		return &AstrayError{Exchange: m.names.Branch, To: to, Want: want}
	}
	return err
}

// destinations are where an exchange leads.
func (m *run) destinations(ctx context.Context, exchange string) ([]string, error) {
	bindings, err := m.Client.BindingsFrom(ctx, m.VHost, exchange)
	var to []string
	for _, b := range bindings {
		d := queueNamed(b.Destination)
		if b.DestinationType == topology.BindingToExchange {
			d = fmt.Sprintf("exchange %q", b.Destination)
		}
		if !slices.Contains(to, d) {
			to = append(to, d)
		}
	}
	return to, err
}

func queueNamed(name string) string { return fmt.Sprintf("queue %q", name) }
