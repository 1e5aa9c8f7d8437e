package topology

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// DecodeManifest reads a manifest. A manifest of a newer version, a field that
// is unknown, missing or there twice, and anything else that no topic resource
// would have written are refused with the name of the field. White space, the
// order of fields and how characters are escaped do not matter, so that a
// manifest may pass through other JSON tools.
func DecodeManifest(text []byte) (Manifest, error) {
	tree, err := manifestTree(text)
	if err != nil {
		return Manifest{}, fmt.Errorf("manifest: %w", err)
	}
	var m Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		var mistyped *json.UnmarshalTypeError
		if errors.As(err, &mistyped) {
			return Manifest{}, fmt.Errorf("manifest: field %q is a %s, which it cannot be; was it edited by hand?", mistyped.Field, mistyped.Value)
		}
		return Manifest{}, fmt.Errorf("manifest: %w", err)
	}
	if m.Broker != "" { // what else must be there depends on it
		if err := m.knownBroker(); err != nil {
			return Manifest{}, fmt.Errorf("manifest of topic %q: %w", m.Topic, err)
		}
	}
	// What was read is written again: a field that the reader passed over or filled in by itself shows as a difference.
	written, err := decodeStrict(m.Encode())
	if err != nil {
		return Manifest{}, fmt.Errorf("manifest: %w", err)
	}
	if err := diffTrees("", tree, written); err != nil {
		return Manifest{}, fmt.Errorf("manifest: %w", err)
	}
	if err := m.validate(); err != nil {
		return Manifest{}, fmt.Errorf("manifest of topic %q: %w", m.Topic, err)
	}
	return m, nil
}

// manifestTree reads the text as a JSON object of a version that can be read.
func manifestTree(text []byte) (map[string]any, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, errors.New("it is empty; write the topic resource's manifest attribute to it")
	}
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("<<")) {
		return nil, errors.New("it is Terraform's way of showing a text, not the text; write it with: terraform output -raw NAME")
	}
	if !utf8.Valid(text) {
		return nil, errors.New("it is not UTF-8; write the topic resource's manifest attribute to it as it is")
	}
	value, err := decodeStrict(text)
	if err != nil {
		return nil, fmt.Errorf("it is not a manifest in JSON: %w", err)
	}
	if _, encoded := value.(string); encoded {
		return nil, errors.New("it is a JSON string and not an object: the manifest attribute is JSON already and was encoded once more; write it as it is")
	}
	tree, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("it is %s and not an object; write the topic resource's manifest attribute to it", kindOf(value))
	}
	number, ok := tree["version"].(json.Number)
	if !ok {
		return nil, errors.New("it has no version; is it the manifest attribute of a topic resource?")
	}
	version, err := strconv.ParseInt(number.String(), 10, 64)
	switch {
	case err != nil || version < 1:
		return nil, fmt.Errorf("its version is %s and versions are whole numbers from 1; is it the manifest attribute of a topic resource?", number)
	case version > ManifestVersion:
		return nil, fmt.Errorf("it has version %d and this library reads up to %d; upgrade the library, or pin the provider to a release that writes version %d",
			version, ManifestVersion, ManifestVersion)
	}
	return tree, nil
}

// diffTrees names the first field in which the text that was read is not what
// a topic resource would have written. path is the field's, with a dot at its end.
func diffTrees(path string, read, written any) error {
	switch want := written.(type) {
	case map[string]any:
		got, ok := read.(map[string]any)
		if !ok {
			return fmt.Errorf("field %q is %s and must be an object", strings.TrimSuffix(path, "."), kindOf(read))
		}
		for _, key := range slices.Sorted(maps.Keys(got)) {
			if _, known := want[key]; !known {
				return fmt.Errorf("field %q is unknown in version %d; was it edited by hand, or written by a newer provider?", path+key, ManifestVersion)
			}
		}
		for _, key := range slices.Sorted(maps.Keys(want)) {
			value, present := got[key]
			if !present {
				return fmt.Errorf("field %q is missing; was it edited by hand?", path+key)
			}
			if err := diffTrees(path+key+".", value, want[key]); err != nil {
				return err
			}
		}
		return nil
	case []any:
		got, ok := read.([]any)
		if !ok || len(got) != len(want) {
			return fmt.Errorf("field %q is %s and must be a list", strings.TrimSuffix(path, "."), kindOf(read))
		}
		for i := range want {
			if err := diffTrees(fmt.Sprintf("%s[%d].", strings.TrimSuffix(path, "."), i), got[i], want[i]); err != nil {
				return err
			}
		}
		return nil
	default:
		if got, want := canonicalValue(read), canonicalValue(written); got != want {
			return fmt.Errorf("field %q is %s and a topic resource would have written %s; was it edited by hand?", strings.TrimSuffix(path, "."), got, want)
		}
		return nil
	}
}

// kindOf says what a JSON value is.
func kindOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case json.Number:
		return "a number"
	case string:
		return "a string"
	case []any:
		return "a list"
	default:
		return "an object"
	}
}

// validate refuses a manifest that a consumer could not act on.
func (m Manifest) validate() error {
	if err := m.knownBroker(); err != nil {
		return err
	}
	if _, err := ParseConvention(string(m.Convention)); err != nil {
		return err
	}
	if m.Convention == "" || m.Topic == "" || m.VHost == "" && m.Broker == BrokerRabbitMQ {
		return fmt.Errorf("vhost %q, topic %q and convention %q: one of them is empty", m.VHost, m.Topic, m.Convention)
	}
	if m.Fingerprint != m.fingerprint() {
		return errors.New("its fingerprint does not match its content: it was edited after the provider wrote it; take the topic resource's manifest attribute as it is")
	}
	if m.Broker == BrokerSQS {
		return errors.Join(m.validateSQS(), m.Retry.validate(m), m.validateModes())
	}
	return errors.Join(m.validateQueues(), m.validateSequence(), m.Retry.validate(m), m.validateModes())
}

func (m Manifest) knownBroker() error {
	if m.Broker != BrokerRabbitMQ && m.Broker != BrokerSQS {
		return fmt.Errorf("broker %q is not known: use %q or %q", m.Broker, BrokerRabbitMQ, BrokerSQS)
	}
	return nil
}

// RequireBroker refuses a manifest of another kind of broker than the one that it is to be used on.
func (m Manifest) RequireBroker(kind string) error {
	if m.Broker == kind {
		return nil
	}
	return fmt.Errorf("topic %q is on %s by its manifest, and not on %s; take the manifest of a topic there", m.Topic, brokerName(m.Broker), brokerName(kind))
}

// brokerName is what people call a kind of broker.
func brokerName(kind string) string {
	switch kind {
	case BrokerRabbitMQ:
		return "RabbitMQ"
	case BrokerSQS:
		return "Amazon SQS"
	default:
		return strconv.Quote(kind)
	}
}

func (m Manifest) validateQueues() error {
	queues := append([]ManifestQueue{m.WorkQueue}, m.WorkQueues()...)
	for _, q := range m.HoldQueues {
		queues = append(queues, q.ManifestQueue)
		if q.Delay <= 0 || q.Tier < 0 || q.Tier >= len(m.Retry.Delays) || q.Shard < 0 {
			return fmt.Errorf("hold queue %q: tier %d, shard %d, delay %s has no place in a ladder of %d delays", q.Name, q.Tier, q.Shard, q.Delay, len(m.Retry.Delays))
		}
	}
	for _, target := range []*ManifestTarget{m.DeadLetter, m.Parked} {
		if target != nil {
			queues = append(queues, target.ManifestQueue)
		}
	}
	for _, q := range queues {
		if q.Name == "" {
			return errors.New("one of its queues has no name")
		}
		if q.Type != Classic && q.Type != Quorum {
			return fmt.Errorf("queue %q: type %q is not known: use %q or %q", q.Name, q.Type, Classic, Quorum)
		}
		if q.URL != "" || q.ARN != "" || q.Attributes != nil {
			return fmt.Errorf("queue %q: on RabbitMQ it has no url, arn or attributes", q.Name)
		}
	}
	return nil
}

func (m Manifest) validateSequence() error {
	if m.Sequence == nil {
		return nil
	}
	shards := m.Sequence.Shards
	switch {
	case m.Retry.Strategy != InPlace:
		return fmt.Errorf("sequence: the retries of a sequenced topic wait in place and not by the strategy %q", m.Retry.Strategy)
	case (m.Sequence.Exchange == "") != (len(shards) == 0):
		return fmt.Errorf("sequence: exchange %q spreads messages over %d shards", m.Sequence.Exchange, len(shards))
	case len(shards) > 0 && shards[0].Name != m.WorkQueue.Name:
		return fmt.Errorf("sequence: the work queue is %q and not the first shard, %q", m.WorkQueue.Name, shards[0].Name)
	}
	for _, q := range m.WorkQueues() {
		if q.Arguments[ArgSingleActiveConsumer] != true {
			return fmt.Errorf("queue %q: a sequenced topic's messages are received by one consumer at a time, and it lacks %s", q.Name, ArgSingleActiveConsumer)
		}
	}
	return nil
}

func (r ManifestRetry) validate(m Manifest) error {
	delays := make([]time.Duration, len(r.Delays))
	for i, d := range r.Delays {
		delays[i] = time.Duration(d)
	}
	if err := (Spec{Identity: Identity{Convention: m.Convention}}).ValidateDelays(delays); err != nil {
		return fmt.Errorf("retry.delays: %w", err)
	}
	switch {
	case !slices.Contains(Strategies(), r.Strategy):
		return fmt.Errorf("retry.strategy %q is not known: use one of %s", r.Strategy, quotedList(Strategies()))
	case r.MaxRetries < 0:
		return fmt.Errorf("retry.max_retries %d is negative", r.MaxRetries)
	case r.MaxRetries > 0 && len(r.Delays) == 0 && r.Strategy != BrokerDelayed:
		return fmt.Errorf("retry: %d retries with no delays is no policy", r.MaxRetries)
	case (r.Strategy == BrokerDelayed) != (r.DelayMin > 0) || r.DelayMax < r.DelayMin || r.DelayMin == 0 && r.DelayMax > 0:
		return fmt.Errorf("retry.delay_min %s and delay_max %s are no waits of the %s strategy", r.DelayMin, r.DelayMax, r.Strategy)
	case (r.Strategy == Hybrid) != (r.HoldFrom > 0):
		return fmt.Errorf("retry.hold_from %s is no border of the %s strategy", r.HoldFrom, r.Strategy)
	case !(r.Jitter >= 0 && r.Jitter < 1):
		return fmt.Errorf("retry.jitter %v is not from 0 to below 1", r.Jitter)
	case r.ConsumerTimeout <= 0:
		return fmt.Errorf("retry.consumer_timeout %s is not positive", r.ConsumerTimeout)
	case (r.Strategy == Republish || r.Strategy == Hybrid) && r.MaxRetries > 0 && len(m.HoldQueues) == 0:
		return fmt.Errorf("retry.strategy %q waits in hold queues and there are none", r.Strategy)
	}
	return nil
}

func (m Manifest) validateModes() error {
	switch {
	case m.Park != ParkReject && m.Park != ParkPublish:
		return fmt.Errorf("park %q is not known: use %q or %q", m.Park, ParkReject, ParkPublish)
	case m.Final != FinalBroker && m.Final != FinalPublish:
		return fmt.Errorf("final %q is not known: use %q or %q", m.Final, FinalBroker, FinalPublish)
	case m.Park == ParkPublish && m.Parked == nil:
		return fmt.Errorf("park = %q without a parked queue", m.Park)
	case m.Final == FinalPublish && m.DeadLetter == nil:
		return fmt.Errorf("final = %q without a dead-letter queue", m.Final)
	}
	return nil
}
