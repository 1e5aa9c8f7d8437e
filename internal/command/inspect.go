package command

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/redeliver/terraform-provider-redeliver/internal/consumer"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

const (
	// defaultInspected is how many messages are shown.
	defaultInspected = 10
	// bodyShown is how much of a body is shown unless all is asked for.
	bodyShown = 2048
)

func (a *app) inspectCommand(s setAside) *cobra.Command {
	var filters filterFlags
	var limit int
	var full, acceptLoss bool
	cmd := &cobra.Command{
		Use: "inspect MANIFEST", Short: "Show the messages of the " + s.noun,
		Long: "Inspect shows messages and leaves them where they are, in their order: why each was set aside, when, after how many attempts, where it failed,\n" +
			"its headers and its body. AMQP cannot look at a message without taking it, so that nobody else sees the messages while they are looked at;\n" +
			"what the broker cannot promise (a look that counts as a delivery, an order that may change) is said below them. Where a look could lose a\n" +
			"message it is refused: so it is of RabbitMQ where the management API, which alone knows, cannot be asked about the queue. Amazon SQS has no other way either: messages are received and given back, and nobody else receives them meanwhile, for\n" +
			"five minutes at most where this command is killed.\n\n" + filterHelp,
		Example: fmt.Sprintf("  redeliver %[1]s inspect orders.json\n  redeliver %[1]s inspect orders.json --reason delivery_limit --older-than 1h --full\n"+
			"  redeliver %[1]s inspect orders.json --where 'body.customer == \"c-17\" && attempts > 3' --output json", s.use),
		Args: manifestArgs(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 0 {
				return usagef("--limit %d: it is not negative; 0 is all", limit)
			}
			m, q, b, err := a.queue(cmd.Context(), s, args[0])
			if err != nil {
				return err
			}
			ctx, end := context.WithCancelCause(cmd.Context())
			defer end(nil)
			filter, err := filters.filter(ctx, end, m)
			if err != nil {
				return err
			}
			handedOut, err := b.HandedOut(ctx, m, q)
			if err != nil {
				return err
			}
			got, err := b.Browse(ctx, m, q, browseOptions{Limit: limit, Filter: filter, AcceptLoss: acceptLoss})
			if err != nil {
				return err
			}
			filters.sayMisfits(a)
			if err := a.printMessages(m, q, got, handedOut, filters.misfitView(), full); err != nil {
				return err
			}
			if filters.misfits > 0 {
				return errFindings
			}
			return nil
		},
	}
	cmd.Flags().IntVar(&limit, "limit", defaultInspected, "how many messages are shown at most; 0 is all")
	cmd.Flags().BoolVar(&full, "full", false, fmt.Sprintf("show whole bodies, and not only the first %d bytes", bodyShown))
	addAcceptLoss(cmd, &acceptLoss)
	filters.add(cmd)
	return a.connects(cmd)
}

func addAcceptLoss(cmd *cobra.Command, accept *bool) {
	cmd.Flags().BoolVar(accept, "accept-loss", false, "look even where the broker may drop a message that was delivered too often, or where nobody can be asked whether it does")
}

// messageView is a message as JSON. Its body is in one of the fields that begin so.
type messageView struct {
	ID                 string          `json:"id"`
	Reason             string          `json:"reason"`
	Error              string          `json:"error,omitempty"`
	Attempts           int             `json:"attempts,omitempty"`
	Deaths             int64           `json:"deaths,omitempty"`
	OriginalQueue      string          `json:"original_queue,omitempty"`
	OriginalExchange   string          `json:"original_exchange,omitempty"`
	OriginalRoutingKey string          `json:"original_routing_key,omitempty"`
	Group              string          `json:"group,omitempty"`
	SetAsideAt         *time.Time      `json:"set_aside_at,omitempty"`
	FirstSeen          *time.Time      `json:"first_seen,omitempty"`
	Timestamp          *time.Time      `json:"timestamp,omitempty"`
	Type               string          `json:"type,omitempty"`
	ContentType        string          `json:"content_type,omitempty"`
	ContentEncoding    string          `json:"content_encoding,omitempty"`
	CorrelationID      string          `json:"correlation_id,omitempty"`
	AppID              string          `json:"app_id,omitempty"`
	Headers            map[string]any  `json:"headers"`
	Size               int             `json:"size"`
	BodyJSON           json.RawMessage `json:"body_json,omitempty"`
	BodyText           *string         `json:"body_text,omitempty"`
	BodyBase64         string          `json:"body_base64,omitempty"`
	BodyTruncated      bool            `json:"body_truncated,omitempty"`
}

// representable says whether JSON has a form for a time: a publisher that counts in milliseconds is in the year 58,000.
func representable(t time.Time) bool { return t.Year() >= 0 && t.Year() <= 9999 }

func timeOrNil(t time.Time) *time.Time {
	if t = t.UTC(); t.IsZero() || !representable(t) {
		return nil
	}
	return &t
}

func viewOfMessage(m topology.Manifest, msg *redeliver.DeadMessage, full bool) messageView {
	v := messageView{
		ID: msg.ID, Reason: msg.Reason, Attempts: msg.Attempts, Deaths: msg.DeathCount, OriginalQueue: msg.OriginalQueue,
		OriginalExchange: msg.OriginalExchange, OriginalRoutingKey: msg.OriginalRoutingKey,
		SetAsideAt: timeOrNil(setAsideAt(m, msg)), FirstSeen: timeOrNil(msg.FirstSeen), Timestamp: timeOrNil(msg.Timestamp),
		Type: msg.Type, ContentType: msg.ContentType, ContentEncoding: msg.ContentEncoding, CorrelationID: msg.CorrelationID, AppID: msg.AppID,
		Headers: texts(msg.Headers), Size: len(msg.Body),
	}
	if m.Broker == topology.BrokerSQS { // where a message has a group, and no routing key
		v.Group, v.OriginalRoutingKey = msg.RoutingKey, ""
		if setAsideAt(m, msg).Equal(msg.Timestamp) { // it does not say when it moved a message
			v.SetAsideAt, v.FirstSeen = nil, nil
		}
	}
	if msg.LastError != msg.Reason {
		v.Error = msg.LastError
	}
	switch {
	case json.Valid(msg.Body) && (full || len(msg.Body) <= bodyShown):
		v.BodyJSON = msg.Body
	case utf8.Valid(msg.Body):
		text, cut := cutText(string(msg.Body), full)
		v.BodyText, v.BodyTruncated = &text, cut
	default:
		body := msg.Body
		if v.BodyTruncated = !full && len(body) > bodyShown; v.BodyTruncated {
			body = body[:bodyShown]
		}
		v.BodyBase64 = base64.StdEncoding.EncodeToString(body)
	}
	return v
}

// cutText is as much of a text as is shown, whole characters.
func cutText(text string, full bool) (string, bool) {
	if full || len(text) <= bodyShown {
		return text, false
	}
	text = text[:bodyShown]
	for len(text) > 0 && !utf8.ValidString(text) {
		text = text[:len(text)-1]
	}
	return text, true
}

// inspectView is what was looked at as JSON.
type inspectView struct {
	VHost     string        `json:"vhost"`
	Topic     string        `json:"topic"`
	Queue     string        `json:"queue"`
	Found     int           `json:"found"`
	Looked    int           `json:"looked_at"`
	HandedOut *int64        `json:"handed_out,omitempty"`
	Messages  []messageView `json:"messages"`
	Notes     []string      `json:"notes"`
	misfitView
}

func (a *app) printMessages(m topology.Manifest, q topology.ManifestQueue, got browsed, handedOut *int64, misfits misfitView, full bool) error {
	views := make([]messageView, len(got.Messages))
	for i := range got.Messages {
		views[i] = viewOfMessage(m, &got.Messages[i], full)
	}
	if n := handedOut; n != nil && *n > 0 && m.Broker == topology.BrokerRabbitMQ { // the notes of SQS say so
		got.Notes = append(got.Notes, fmt.Sprintf("%s that somebody has been handed, a consumer or another look, %s not seen.", messages(*n), plural(*n, "was", "were")))
	}
	if a.json() {
		return a.printJSON(inspectView{
			VHost: m.VHost, Topic: m.Topic, Queue: q.Name, Found: got.Found, Looked: got.Looked, HandedOut: handedOut,
			Messages: views, Notes: append([]string{}, got.Notes...), misfitView: misfits,
		})
	}
	a.printf("queue %s of topic %s %s: %s, %d looked at, %d shown\n", a.styled(bold, shown(q.Name)), shown(m.Topic), place(m.VHost), messages(got.Found), got.Looked, len(views))
	for i := range views {
		a.printMessage(i+1, &views[i], got.Messages[i].Body, full)
	}
	for _, note := range got.Notes {
		a.printf("\n%s %s\n", a.styled(warned, "note:"), note)
	}
	return nil
}

// ownHeader reports whether a header is the broker's, whose content is shown in other words or is about the look itself.
func ownHeader(name string) bool {
	return name == consumer.HeaderDeadLetterSource || name == topology.HeaderDeath || name == topology.HeaderDeliveryCount || name == topology.HeaderAcquiredCount || strings.HasPrefix(name, topology.PrefixFirstDeath) || strings.HasPrefix(name, topology.PrefixLastDeath)
}

func (a *app) printMessage(n int, v *messageView, body []byte, full bool) {
	id := v.ID
	if id == "" {
		id = "(no id)"
	}
	a.printf("\n%s %s\n", a.styled(dim, fmt.Sprintf("#%d", n)), a.styled(bold, shown(id)))
	t := table{indent: "   "}
	line := func(name, text string) {
		if text != "" {
			t.add(cell{name, dim}, cell{text: shown(text)})
		}
	}
	line("reason", v.Reason)
	line("error", v.Error)
	if v.Attempts > 0 {
		line("attempts", count(v.Attempts))
	}
	line("failed in", v.OriginalQueue)
	if v.OriginalExchange != "" || v.OriginalRoutingKey != "" {
		line("came by", fmt.Sprintf("exchange %q, routing key %q", v.OriginalExchange, v.OriginalRoutingKey))
	}
	line("group", v.Group)
	at := func(name string, t *time.Time) {
		if t != nil {
			line(name, t.Format(time.RFC3339)+" ("+age(*t)+" ago)")
		}
	}
	at("set aside", v.SetAsideAt)
	at("first seen", v.FirstSeen)
	at("made", v.Timestamp)
	line("type", v.Type)
	line("correlation", v.CorrelationID)
	line("app", v.AppID)
	for _, name := range slices.Sorted(maps.Keys(v.Headers)) {
		if !ownHeader(name) {
			line("header", name+" = "+headerText(v.Headers[name]))
		}
	}
	what := strings.TrimSpace(v.ContentType + " " + v.ContentEncoding)
	if what != "" {
		what += ", "
	}
	line("body", what+count(v.Size)+" bytes")
	a.printf("%s", t.render(a))
	for text := range strings.Lines(bodyText(body, full)) {
		a.printf("   %s %s\n", a.styled(dim, "|"), shown(strings.TrimRight(text, "\r\n")))
	}
}

// bodyText is a body for people: JSON indented, text as it is, anything else in hexadecimal; the beginning of it unless
// full.
func bodyText(body []byte, full bool) string {
	if len(body) == 0 {
		return ""
	}
	var indented bytes.Buffer
	var text string
	var cut bool
	switch {
	case json.Indent(&indented, body, "", "  ") == nil:
		text, cut = cutText(indented.String(), full)
	case utf8.Valid(body):
		text, cut = cutText(string(body), full)
	default:
		if cut = !full && len(body) > bodyShown/4; cut {
			body = body[:bodyShown/4]
		}
		text = strings.TrimRight(hex.Dump(body), "\n")
	}
	if cut {
		text += "\n... (--full shows all)"
	}
	return text
}
