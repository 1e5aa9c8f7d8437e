package topology

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// BrokerDelayedSince is the first RabbitMQ series whose queues delay messages
// that are given back. Older ones accept the arguments and do nothing.
const BrokerDelayedSince = "4.3"

// CheckVersion refuses a topic that a broker of this version cannot carry.
func (s Spec) CheckVersion(version string) error {
	if s.Retry.strategy() != BrokerDelayed || atLeast(version, BrokerDelayedSince) {
		return nil
	}
	return fmt.Errorf("retry strategy %q of topic %q needs RabbitMQ %s or later and this broker is %s: it would take the queue's arguments and give a retried message back at once; "+
		"upgrade the broker, or use %q (the consumer waits), or %q or %q with hold queues", BrokerDelayed, s.Topic, BrokerDelayedSince, version, InPlace, Republish, Hybrid)
}

// CheckExchangeTypes refuses a topic whose exchanges a broker with these types of exchange cannot have.
func (s Spec) CheckExchangeTypes(types []string) error {
	if s.SequenceShards == 0 || slices.Contains(types, ExchangeConsistentHash) {
		return nil
	}
	return fmt.Errorf("topic %q is spread over %d shards by an exchange of type %q, which this broker does not have: enable the plugin %s, which comes with RabbitMQ, "+
		"on every node (rabbitmq-plugins enable %s), then plan again", s.Topic, s.SequenceShards, ExchangeConsistentHash, ConsistentHashPlugin, ConsistentHashPlugin)
}

// atLeast compares the first two numbers of versions such as "4.3.6". A version that is none is not.
func atLeast(version, least string) bool {
	have, haveOK := series(version)
	want, wantOK := series(least)
	return haveOK && wantOK && slices.Compare(have[:], want[:]) >= 0
}

func series(version string) (numbers [2]int, ok bool) {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return numbers, false
	}
	for i := range numbers {
		n, err := strconv.Atoi(parts[i])
		if err != nil {
			return numbers, false
		}
		numbers[i] = n
	}
	return numbers, true
}
