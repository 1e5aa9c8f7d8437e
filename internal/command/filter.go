package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/vm"
	"github.com/spf13/cobra"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// filterFlags say which messages a command is about.
type filterFlags struct {
	headers              []string
	reason, where        string
	olderThan, newerThan string

	// misfits are the messages that the expression could not be evaluated on, and misfit is why the first one was none.
	misfits int
	misfit  error
}

// evaluationTimeout is how long an expression may take on one message. Nothing but the end of the command ends one that
// takes longer.
const evaluationTimeout = 3 * time.Second

var errTooLong = errors.New("it took longer than " + evaluationTimeout.String())

const filterHelp = `Filters: all that are given have to match. --filter NAME=VALUE compares a header; --reason is why the message was set aside (rejected,
delivery_limit, expired, maxlen, on Amazon SQS max_receives, or the error that a consumer wrote down), or a part of it; --older-than and
--newer-than compare when it was set aside (where only SQS moved it, when it was sent), and a message of which that is not known matches
neither. --where is an expression (https://expr-lang.org) over

    body      the decoded JSON, else the text (nil where it is neither)
    headers   the headers by name
    attempts  how often it was handled, as far as its headers say
    age       how long ago it was set aside, 0 where that is not known: age > duration("1h")
    id, message_type, content_type, reason, error, queue, exchange, routing_key

A message that it cannot be evaluated on, such as body.amount > 100 where the body is a text or has no amount, counts as not wanted; how many
there are is said, and the exit code is then 1: write type(body) == "map" && (body.amount ?? 0) > 100. More than 3 seconds on one message end
the command.`

func (f *filterFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.headers, "filter", nil, "only messages with this header, NAME=VALUE (may be given more than once)")
	cmd.Flags().StringVar(&f.reason, "reason", "", "only messages that were set aside for this reason")
	cmd.Flags().StringVar(&f.olderThan, "older-than", "", "only messages that were set aside longer ago, such as 30m or 2d")
	cmd.Flags().StringVar(&f.newerThan, "newer-than", "", "only messages that were set aside since")
	cmd.Flags().StringVar(&f.where, "where", "", `only messages that an expression is true of, such as 'body.amount > 100'`)
}

// filter is what the flags say; nil where they say nothing. It ends the run by end where it goes on for ever.
func (f *filterFlags) filter(ctx context.Context, end context.CancelCauseFunc, m topology.Manifest) (wanted, error) {
	var all []wanted
	for _, text := range f.headers {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, usagef("--filter %q: write NAME=VALUE", text)
		}
		all = append(all, func(msg *redeliver.DeadMessage) bool {
			have, there := msg.Headers[name]
			return there && headerText(have) == value
		})
	}
	if f.reason != "" {
		all = append(all, func(msg *redeliver.DeadMessage) bool {
			return strings.Contains(msg.Reason, f.reason) || strings.Contains(msg.LastError, f.reason)
		})
	}
	now := time.Now()
	for _, limit := range []struct {
		flag, text string
		older      bool
	}{{"--older-than", f.olderThan, true}, {"--newer-than", f.newerThan, false}} {
		if limit.text == "" {
			continue
		}
		d, err := topology.ParseDuration(limit.text)
		if err != nil {
			return nil, usagef("%s: %w", limit.flag, err)
		}
		all = append(all, func(msg *redeliver.DeadMessage) bool {
			at := setAsideAt(m, msg)
			return !at.IsZero() && (now.Sub(at) > d) == limit.older
		})
	}
	if f.where != "" {
		where, err := f.expression(ctx, end, m, now)
		if err != nil {
			return nil, err
		}
		all = append(all, where)
	}
	if all == nil {
		return nil, nil //nolint:nilnil // no filter wants every message
	}
	return func(msg *redeliver.DeadMessage) bool {
		for _, want := range all {
			if !want(msg) {
				return false
			}
		}
		return true
	}, nil
}

// scope is what an expression may use.
type scope struct {
	Body        any            `expr:"body"`
	Headers     map[string]any `expr:"headers"`
	ID          string         `expr:"id"`
	Type        string         `expr:"message_type"`
	ContentType string         `expr:"content_type"`
	Reason      string         `expr:"reason"`
	Error       string         `expr:"error"`
	Queue       string         `expr:"queue"`
	Exchange    string         `expr:"exchange"`
	RoutingKey  string         `expr:"routing_key"`
	Attempts    int            `expr:"attempts"`
	Age         time.Duration  `expr:"age"`
}

func scopeOf(m topology.Manifest, msg *redeliver.DeadMessage, now time.Time) scope {
	s := scope{
		Body: bodyOf(msg.Body), Headers: texts(msg.Headers), ID: msg.ID, Type: msg.Type, ContentType: msg.ContentType, Reason: msg.Reason, Error: msg.LastError,
		Queue: msg.OriginalQueue, Exchange: msg.OriginalExchange, RoutingKey: msg.OriginalRoutingKey, Attempts: msg.Attempts,
	}
	if at := setAsideAt(m, msg); !at.IsZero() {
		s.Age = now.Sub(at)
	}
	return s
}

// expression is a filter that is written as an expression. What it cannot be evaluated on, such as a field of a body that is
// no object, is not wanted, and counted.
func (f *filterFlags) expression(ctx context.Context, end context.CancelCauseFunc, m topology.Manifest, now time.Time) (wanted, error) {
	program, err := expr.Compile(f.where, expr.Env(scope{}), expr.AsBool())
	if err != nil {
		return nil, usagef("--where %q: %w", f.where, err)
	}
	machine := vm.VM{}
	return func(msg *redeliver.DeadMessage) bool {
		if ctx.Err() != nil { // the machine may still be at it
			return false
		}
		limited, cancel := context.WithTimeoutCause(ctx, evaluationTimeout, errTooLong)
		defer cancel()
		of := scopeOf(m, msg, now)
		value, err := answered(limited, func() (any, error) { return machine.Run(program, of) })
		switch {
		case errors.Is(err, errTooLong):
			end(fmt.Errorf("--where %q cannot be evaluated on message %q: %w; nothing was done with the message", f.where, msg.ID, err))
			return false
		case ctx.Err() != nil:
			return false
		case err != nil:
			if f.misfits++; f.misfit == nil {
				f.misfit = err
			}
			return false
		}
		yes, isBool := value.(bool)
		return isBool && yes
	}, nil
}

// misfitView is how many messages the expression could not be evaluated on, and why not on the first of them, as JSON.
type misfitView struct {
	Failed int    `json:"where_failed,omitempty"`
	Error  string `json:"where_error,omitempty"`
}

func (f *filterFlags) misfitView() misfitView {
	if f.misfits == 0 {
		return misfitView{}
	}
	reason, _, _ := strings.Cut(f.misfit.Error(), "\n")
	return misfitView{f.misfits, reason}
}

// sayMisfits says on how many messages the expression could not be evaluated: it may have a mistake in it.
func (f *filterFlags) sayMisfits(a *app) {
	if v := f.misfitView(); v.Failed > 0 && !a.json() {
		a.say("--where could not be evaluated on %s, which %s as not wanted; the first: %s", messages(v.Failed), plural(v.Failed, "counts", "count"), shown(v.Error))
	}
}

// bodyOf is a body as an expression sees it: decoded where it is JSON, else text where it is that.
func bodyOf(body []byte) any {
	var decoded any
	if json.Unmarshal(body, &decoded) == nil {
		return decoded
	}
	if utf8.Valid(body) {
		return string(body)
	}
	return nil
}

// texts are headers with those that are bytes as text.
func texts(headers map[string]any) map[string]any {
	out := make(map[string]any, len(headers))
	for name, value := range headers {
		if b, ok := value.([]byte); ok && utf8.Valid(b) {
			value = string(b)
		}
		if t, ok := value.(time.Time); ok && !representable(t) {
			value = t.Unix()
		}
		out[name] = value
	}
	return out
}

// headerText writes a header's value: a text as it is, anything else as JSON.
func headerText(value any) string {
	switch v := value.(type) {
	case string, []byte:
		return topology.HeaderText(v)
	case time.Time:
		return v.UTC().Format(time.RFC3339)
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}

// setAsideAt is when a message came into the queue, as far as it says so: its last death, when a consumer wrote that it
// failed last, or when it was made. Zero where nothing says so.
func setAsideAt(m topology.Manifest, msg *redeliver.DeadMessage) time.Time {
	for _, death := range msg.Deaths {
		if !death.Time.IsZero() {
			return death.Time
		}
	}
	if name := m.Headers.LastFailedAt; name != "" {
		if at, err := time.Parse(time.RFC3339, topology.HeaderText(msg.Headers[name])); err == nil {
			return at
		}
	}
	return msg.Timestamp
}
