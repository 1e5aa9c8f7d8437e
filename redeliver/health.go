package redeliver

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// HealthStatus says how a consumer is.
type HealthStatus string

// The statuses, from good to bad.
const (
	// HealthOK: subscribed, nothing unusual.
	HealthOK HealthStatus = "ok"
	// HealthDegraded: it works, and somebody should look: Reasons say at what.
	HealthDegraded HealthStatus = "degraded"
	// HealthDown: it takes no messages: not started, reconnecting, shutting down or closed.
	HealthDown HealthStatus = "down"
)

// Health is how a consumer is at a moment. It is cheap to ask for, and encodes
// as JSON for whoever asks over HTTP.
type Health struct {
	// Status says how it is.
	Status HealthStatus `json:"status"`
	// Topic is the consumer's topic; a group of several topics has none.
	Topic string `json:"topic,omitempty"`
	// Reasons say why it is not ok, in words for an operator. Empty where it is ok.
	Reasons []string `json:"reasons,omitempty"`
	// Since is when the subscription that is alive began, or the last one ended. Zero before the first.
	Since time.Time `json:"since,omitzero"`
	// Parts are the consumers that a group or a sharded topic is made of; empty for a single one.
	Parts []Health `json:"parts,omitempty"`
}

// Err is nil unless the consumer is down: what a readiness probe answers with.
// A degraded consumer is ready; restarting it would cure nothing. For a liveness
// probe it is too much: a consumer that is down because its broker is reconnects
// by itself.
func (h Health) Err() error {
	if h.Status != HealthDown {
		return nil
	}
	text := string(h.Status)
	if len(h.Reasons) > 0 {
		text += ": " + strings.Join(h.Reasons, "; ")
	}
	if h.Topic != "" {
		text = fmt.Sprintf("topic %q: %s", h.Topic, text)
	}
	return errors.New(text)
}

// Level is the status as a number, for a metric: 0 for ok, 1 for degraded, 2
// for down and for what is no status.
func (s HealthStatus) Level() int {
	switch s {
	case HealthOK:
		return 0
	case HealthDegraded:
		return 1
	default:
		return 2
	}
}

// JoinHealth is the health of a whole from that of its parts: its status is
// the worst of theirs, its reasons are theirs with their topics, and it is as
// it is since the last change to one of them. A whole without parts is ok.
func JoinHealth(topic string, parts ...Health) Health {
	whole := Health{Status: HealthOK, Topic: topic, Parts: parts}
	for _, part := range parts {
		if part.Status.Level() > whole.Status.Level() {
			whole.Status = part.Status
		}
		for _, reason := range part.Reasons {
			if part.Topic != "" && part.Topic != topic {
				reason = part.Topic + ": " + reason
			}
			whole.Reasons = append(whole.Reasons, reason)
		}
		if part.Since.After(whole.Since) {
			whole.Since = part.Since
		}
	}
	return whole
}
