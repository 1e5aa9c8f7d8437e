package topology

import (
	"maps"
	"strings"
)

// Headers that RabbitMQ itself gives a meaning. They belong to one delivery of
// one message, so a copy must not carry them.
const (
	// HeaderDeliveryCount is how often a quorum queue has delivered the message before; absent is 0. A publisher can
	// forge it.
	HeaderDeliveryCount = "x-delivery-count"
	// HeaderAcquiredCount is the same with returns that do not count, since RabbitMQ 4.3.
	HeaderAcquiredCount = "x-acquired-count"
	// HeaderDeath is the message's dead-letter history, newest first.
	HeaderDeath = "x-death"
	// PrefixFirstDeath and PrefixLastDeath start the headers that repeat parts of it; the last ones since RabbitMQ 4.0.
	PrefixFirstDeath = "x-first-death-"
	PrefixLastDeath  = "x-last-death-"
	// HeaderCC and HeaderBCC name further routing keys: kept, they would multiply the copy.
	HeaderCC  = "CC"
	HeaderBCC = "BCC"
)

// Headers that keep, under every convention, two properties which a copy
// cannot have as properties: with an expiration it would leave its queue early,
// and a user id other than the publisher's own is refused by the broker.
const (
	HeaderOriginalExpiration = "x-redeliver-expiration"
	HeaderOriginalUserID     = "x-redeliver-user-id"
)

// HeaderNotBefore is, under every convention, when a copy may be handed to a
// handler at the earliest, as an integer of milliseconds since 1970: a delay
// that is longer than every hold queue takes several hops, and a copy that comes
// home before its time goes out again, uncounted. A copy without it is due.
const HeaderNotBefore = "x-redeliver-not-before"

// CopyHeaders are the headers of a copy of a message: its own, without those
// that belong to the old delivery and those in unset, and with those in set. An
// expiration and a user id, which a copy cannot have as properties, are kept as
// headers. The message's own headers are not changed.
func CopyHeaders(headers map[string]any, expiration, userID string, set map[string]any, unset []string) map[string]any {
	made := make(map[string]any, len(headers)+len(set)+2)
	for key, value := range headers {
		if !belongsToDelivery(key) {
			made[key] = value
		}
	}
	if expiration != "" {
		made[HeaderOriginalExpiration] = expiration
	}
	if userID != "" {
		made[HeaderOriginalUserID] = userID
	}
	for _, key := range unset {
		delete(made, key)
	}
	maps.Copy(made, set)
	return made
}

func belongsToDelivery(header string) bool {
	switch header {
	case HeaderDeliveryCount, HeaderAcquiredCount, HeaderDeath, HeaderCC, HeaderBCC:
		return true
	default:
		return strings.HasPrefix(header, PrefixFirstDeath) || strings.HasPrefix(header, PrefixLastDeath)
	}
}
