package command

import (
	"encoding/json"
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

	// misfits are the messages that the expression cannot be asked of, and misfit why the first one cannot.
	misfits int
	misfit  error
}

const filterHelp = `Filters: all that are given have to match. --filter NAME=VALUE compares a header; --reason is why the message was set aside (rejected,
delivery_limit, expired, maxlen, on Amazon SQS max_receives, or the error that a consumer wrote down), or a part of it; --older-than and
--newer-than compare when it was set aside (where only SQS moved it, when it was sent), and a message of which that is not known matches
neither. --where is an expression (https://expr-lang.org) over

    body      the decoded JSON, else the text (nil where it is neither)
    headers   the headers by name
    attempts  how often it was handled, as far as its headers say
    age       how long ago it was set aside, 0 where that is not known: age > duration("1h")
    id, message_type, content_type, reason, error, queue, exchange, routing_key`

func (f *filterFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.headers, "filter", nil, "only messages with this header, NAME=VALUE (may be given more than once)")
	cmd.Flags().StringVar(&f.reason, "reason", "", "only messages that were set aside for this reason")
	cmd.Flags().StringVar(&f.olderThan, "older-than", "", "only messages that were set aside longer ago, such as 30m or 2d")
	cmd.Flags().StringVar(&f.newerThan, "newer-than", "", "only messages that were set aside since")
	cmd.Flags().StringVar(&f.where, "where", "", `only messages that an expression is true of, such as 'body.amount > 100'`)
}

// filter is what the flags say; nil where they say nothing.
func (f *filterFlags) filter(m topology.Manifest) (wanted, error) {
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
		where, err := f.expression(m, now)
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

// expression is a filter that is written as an expression. What it cannot be asked of, such as a field of a body that is no
// object, is not wanted, and counted.
func (f *filterFlags) expression(m topology.Manifest, now time.Time) (wanted, error) {
	program, err := expr.Compile(f.where, expr.Env(scope{}), expr.AsBool())
	if err != nil {
		return nil, usagef("--where %q: %w", f.where, err)
	}
	machine := vm.VM{}
	return func(msg *redeliver.DeadMessage) bool {
		value, err := machine.Run(program, scopeOf(m, msg, now))
		if err != nil {
			if f.misfits++; f.misfit == nil {
				f.misfit = err
			}
			return false
		}
		yes, isBool := value.(bool)
		return isBool && yes
	}, nil
}

// sayMisfits says of how many messages the expression could not be asked: it may have a mistake in it.
func (f *filterFlags) sayMisfits(a *app) {
	if f.misfits > 0 {
		reason, _, _ := strings.Cut(f.misfit.Error(), "\n")
		a.say("--where could not be asked of %s, which count as not wanted; the first: %s", messages(f.misfits), shown(reason))
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
